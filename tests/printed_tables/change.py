"""What was published for E3, E-A4x and E-A4m, under the keys of our estimates."""

from __future__ import annotations

from collections.abc import Callable

from printed_tables.tables import bounds, tables, with_interval
from rulescope.assays.change.change_tables import ARM_NAMES, CONDITION_NAMES
from rulescope.assays.comparison_families import PRIMARY
from rulescope.assays.published import Published

SEEDS = 18
"""Of every cell of E3 and E-A4m."""
_BOARDS = {"8x8": "catch", "16x16": "catch-long"}
_ARMS = {name: arm for arm, name in ARM_NAMES.items()} | {
    "Disco": "disco",
    "disco": "disco",
    "DQN clear": "dqn-cleared",
}
_CONDITIONS = {name: condition for condition, name in CONDITION_NAMES.items()} | {
    name.lower(): condition for condition, name in CONDITION_NAMES.items()
}
_REPLAYS = {"100k": "100k", "28,672": "28672", "clear": "cleared"}


def _change() -> dict[str, Published]:
    """E3: areas, final windows, times to competence, replay contrasts, auxiliary losses."""
    found: dict[str, Published] = {}
    for condition in ("action-flip", "reward-move", "none"):
        for row in tables()[f"tab:unified-recovery-{condition.replace('-', '_')}"]:
            name = f"{condition}/{_BOARDS[row['Grid']]}/{_ARMS[row['Condition']]}"
            found[f"auc/{name}"] = with_interval(row["AUC [95% CI]"], n=SEEDS)
            found[f"final/{name}"] = with_interval(row["Final window [95% CI]"], n=SEEDS)
            found[f"attained/{name}/0.8"] = _share(row["Target"])
            found[f"rmd/{name}/0.8"] = Published(row["RMD"], n=SEEDS)
    for row in tables()["tab:e3-thresholds"]:
        name = f"{_CONDITIONS[row['Change']]}/catch/{_ARMS[row['System']]}/{row['Threshold']}"
        found[f"attained/{name}"] = _share(row["Attained"])
        found[f"time/{name}"] = Published(row["RM time (1e3)"], n=SEEDS)
    return found | _contrasts()


def _share(printed: str) -> Published:
    reached, runs = (int(number) for number in printed.split("/"))
    return Published(reached / runs, n=runs)


def _contrasts() -> dict[str, Published]:
    found: dict[str, Published] = {}
    for row in tables()["tab:e3-all"]:
        condition, _, replay = row["Change / replay"].partition(" / ")
        name = f"{_CONDITIONS[condition]}/{_REPLAYS[replay]}"
        for kind, value, interval in (
            ("contrast", "Trim", "Adjusted CI"),
            ("contrast-iqm", "IQM", "Adjusted CI #2"),
        ):
            ends = bounds(row[interval])
            found[f"{kind}/{name}"] = Published(row[value], *ends, SEEDS, PRIMARY.size)
    for row in tables()["tab:unified-recovery-noaux"]:
        metric = {"AUC": "auc", "Final window": "final"}[row["Metric"]]
        name = f"{_CONDITIONS[row['Change']]}/{_BOARDS[row['Grid']]}/{metric}"
        found[f"no-aux/{name}"] = with_interval(row["Paired difference [95% CI]"], n=SEEDS)
    return found


def _levels(label: str, n: int) -> dict[str, Published]:
    """Levels around the switch; the one before it is printed without an interval."""
    found: dict[str, Published] = {}
    for row in tables()[label]:
        name = f"{_CONDITIONS[row['Change']]}/{_ARMS[row['Condition']]}"
        found[f"pre/{name}"] = Published(row["Pre"], n=n)
        found[f"auc/{name}"] = with_interval(row["Post-switch AUC [95% CI]"], n=n)
        found[f"endpoint/{name}"] = with_interval(row["Endpoint [95% CI]"], n=n)
    return found


ESTIMATES: dict[str, Callable[[], dict[str, Published]]] = {
    "E3": _change,
    "E-A4x": lambda: _levels("tab:unified-recovery-mapping", 12),
    "E-A4m": lambda: _levels("tab:unified-recovery-breakout", SEEDS),
}
