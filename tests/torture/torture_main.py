"""``python scripts/torture``: stress tests of campaigns and stores, with the measured figures."""

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

from torture.campaign_process import Lifetimes
from torture.promises import PARTS, Log, Shown, Sizes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen parts; return 0 if every promise was kept."""
    chosen = _chosen(arguments)
    sizes = Sizes(**{name: getattr(chosen, name) for name in Sizes._fields})
    shown: list[tuple[str, Shown]] = []
    with tempfile.TemporaryDirectory(prefix="rulescope-torture-", dir=chosen.folder) as folder:
        Path(folder).chmod(0o755)  # other users must be able to read it
        for part in chosen.only:
            start = time.monotonic()

            def log(what: str, part: str = part, start: float = start) -> None:
                print(f"{part}: {what} [{time.monotonic() - start:.0f} s]", file=sys.stderr)

            log("started")
            found = [(part, each) for each in _run_part(part, Path(folder) / part, sizes, log)]
            log("finished")
            shown += found
            if not chosen.as_json:
                _print_table(found)
    if chosen.as_json:
        print(json.dumps([{"part": part, **each._asdict()} for part, each in shown]))
    return 0 if all(each.kept for _, each in shown) else 1


def _run_part(part: str, folder: Path, sizes: Sizes, log: Log) -> list[Shown]:
    """Return the findings of one part; an exception is one, too."""
    try:
        return list(PARTS[part](folder, sizes, log))
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
        if name == "lifetimes":
            parser.add_argument(option, choices=get_args(Lifetimes), default=default)
        else:
            parser.add_argument(option, type=int, default=default, metavar="N")
    parser.add_argument("--folder", type=Path, help="folder for temporary stores")
    parser.add_argument("--json", action="store_true", dest="as_json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
