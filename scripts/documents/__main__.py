"""Write the generated numbers and tables of the Markdown pages.

    python scripts/documents            # or: make docs
    python scripts/documents --check    # change nothing; exit code 1 if a page is stale

They come from the code and from ``replication/store``, ``replication/publication`` and
``docs/measured.json``. If there are new records, run ``make results``, which does this too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    """Fill every page, or list the stale ones."""
    from documents.pages import stale
    from documents.repository import Repository
    from rulescope.core.errors import RulescopeError

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="Change nothing; list the stale pages."
    )
    check = parser.parse_args().check
    repository = Repository()
    try:
        found = list(stale(repository))
    except RulescopeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    for page, text in found:
        print(f"{page.relative_to(repository.root)}: {'stale' if check else 'written'}")
        if not check:
            page.write_text(text, encoding="utf-8")
    return int(check and bool(found))


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    sys.exit(main())
