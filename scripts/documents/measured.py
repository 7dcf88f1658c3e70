"""Measured figures, kept as data with the command that measured them: ``docs/measured.json``.

The tables of ``python -m benchmarks`` are made from what ``python -m benchmarks --json`` prints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from documents.spans import DocumentError
from rulescope.core.errors import nearest
from rulescope.render.tables import number

Data = Mapping[str, Any]


class Measured:
    """All measurements of a file."""

    def __init__(self, path: Path) -> None:
        self._all: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))

    def get(self, name: str) -> Any:
        """Return the value at ``name``, such as ``bench/output/catch/ours_ms/median``."""
        found: Any = self._all
        for part in name.split("/"):
            if not isinstance(found, dict) or part not in found:
                valid = found if isinstance(found, dict) else {}
                raise DocumentError(f"no measurement {name!r}: no {part!r}{nearest(part, valid)}")
            found = found[part]
        return found

    def provenance(self, name: str) -> str:
        """Return the command, date and machine of a measurement."""
        one = self.get(name)
        return f"`{one['command']}`, {one['date']}; {one['machine']}"

    def worlds(self) -> list[list[str]]:
        """Return the table of both worlds in which Disco's iteration is measured."""
        output = self.get("bench/output")
        pair = (output["catch"], output["catch_big"])
        peer = " ".join(output["peer"].values())
        rows: list[tuple[str, Callable[[Data], str]]] = [
            ("distinct observations in a batch", lambda one: f"{one['distinct_rows']:,.0f}"),
            ("our iteration, ms", lambda one: spread(one["ours_ms"], 1)),
            (f"{peer}, ms", lambda one: spread(one["peer_ms"], 1)),
            (f"**{peer} / ours**", lambda one: f"**{spread(one['ratio_to_peer'], 2)}**"),
            ("products of the update's shapes, GFLOP/s", lambda one: spread(one["gflops"], 1)),
            ("arithmetic limit, ms", lambda one: spread(one["limit_ms"], 1)),
            ("**ours / limit**", lambda one: f"**{spread(one['ratio_to_limit'], 2)}**"),
            (
                "ours / limit at a large square product's rate",
                lambda one: spread(one["ratio_to_square"], 2),
            ),
        ]
        shown = [[name, *(written(one) for one in pair)] for name, written in rows]
        return [["", "Catch 8×8", "Catch 24×24"], *shown]

    def scaling(self) -> list[list[str]]:
        """Return the table of other sizes of Disco's iteration."""
        rows = [
            [
                f"{one['batch']}",
                f"{one['grid']}×{one['grid']}",
                f"{one['actions']}",
                f"{one['distinct_rows']:,.0f}",
                f"{one['ours_ms']['median']:.0f}",
                f"{one['ratio_to_limit']['median']:.2f}",
            ]
            for one in self.get("bench/output/scaling")
        ]
        return [["batch", "board", "actions", "distinct", "ms", "ours / limit"], *rows]

    def baselines(self) -> list[list[str]]:
        """Return the table of the baselines beside their peer."""
        outputs = [self.get(f"bench-{name}/output") for name in ("a2c", "ppo", "dqn")]
        peer = " ".join(outputs[0]["peer"].values())
        rows = [
            [
                one["learner"].upper(),
                spread(one["ours_iterations_per_second"], 1),
                spread(one["peer_iterations_per_second"], 1),
                f"**{spread(one['ratio_to_peer'], 2)}**",
            ]
            for one in outputs
        ]
        return [["", "ours, iterations/s", f"{peer}, iterations/s", "**its time / ours**"], *rows]


def spread(data: Data, digits: int) -> str:
    """Return a median with its quartiles."""
    median, low, high = (number(data[part], digits) for part in ("median", "q1", "q3"))
    return f"{median} [{low}, {high}]"
