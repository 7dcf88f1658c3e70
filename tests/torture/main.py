"""``python scripts/torture``: show that campaigns survive anything, with the figures."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from torture.campaign import Lives
from torture.promises import PARTS, Say, Shown, Sizes


def main(arguments: Sequence[str] | None = None) -> int:
    """Torture; return 0 if every promise was kept."""
    chosen = _chosen(arguments)
    sizes = Sizes(**{name: getattr(chosen, name) for name in Sizes._fields})
    shown: list[tuple[str, Shown]] = []
    with tempfile.TemporaryDirectory(prefix="rulescope-torture-", dir=chosen.folder) as folder:
        Path(folder).chmod(0o755)  # others look into it, too
        for part in chosen.only:
            begun = time.monotonic()

            def say(what: str, part: str = part, begun: float = begun) -> None:
                print(f"{part}: {what} [{time.monotonic() - begun:.0f} s]", file=sys.stderr)

            say("begins")
            found = [(part, each) for each in _tried(part, Path(folder) / part, sizes, say)]
            say("has ended")
            shown += found
            if not chosen.as_json:
                _print_table(found)
    if chosen.as_json:
        print(json.dumps([{"part": part, **each._asdict()} for part, each in shown]))
    return 0 if all(each.kept for _, each in shown) else 1


def _tried(part: str, folder: Path, sizes: Sizes, say: Say) -> list[Shown]:
    """Return what one part shows; that it breaks down shows something, too."""
    try:
        return list(PARTS[part](folder, sizes, say))
    except Exception as fault:
        text = traceback.format_exc()
        return [Shown(f"{part} runs to its end", repr(fault)[:300], False, [text], {})]


def _print_table(shown: Sequence[tuple[str, Shown]]) -> None:
    for part, each in shown:
        print(f"{'kept  ' if each.kept else 'BROKEN'} {part:10} {each.promise}")
        print(f"{'':17} {each.found}")
        for problem in dict.fromkeys(each.problems):
            print(f"{'':17} ! {problem}")


def _parts(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"no part {name!r}; there are {', '.join(PARTS)}")
    return [name for name in PARTS if name in names]


def _chosen(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument(
        "--only", type=_parts, default=list(PARTS), metavar="A,B", help=f"of: {', '.join(PARTS)}"
    )
    standard = Sizes()
    for name in Sizes._fields:
        default = getattr(standard, name)
        option = f"--{name.replace('_', '-')}"
        if name == "lives":
            parser.add_argument(option, choices=get_args(Lives), default=default)
        else:
            parser.add_argument(option, type=int, default=default, metavar="N")
    parser.add_argument("--folder", type=Path, help="for what is written meanwhile")
    parser.add_argument("--json", action="store_true", dest="as_json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
