"""The promises of campaigns and stores, each with its stress test and the measured figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from torture import faults, flips, kills, large_store, orders, points, throughput, writers
from torture.campaign_process import Lifetimes

Log = Callable[[str], None]


class Shown(NamedTuple):
    """One promise and the findings about it."""

    promise: str
    found: str
    kept: bool
    problems: list[str]
    figures: dict[str, Any]


class Sizes(NamedTuple):
    """The sizes of all parts."""

    kills: int = 200
    damages: int = 64
    writers: int = 16
    commits: int = 200
    commands: int = 3
    """Commands that are run with disk errors."""
    records: int = 20_000
    few_records: int = 1_000
    seeds: int = 3
    """Seeds of the grid: eight runs each."""
    lifetimes: Lifetimes = "real"
    seed: int = 1


def every_point(folder: Path, _: Sizes, __: Log) -> Iterable[Shown]:
    """Kill a writer at every single step."""
    found = points.torture(folder)
    killed = found.phases.total()
    yield Shown(
        "killed at every step of a write: the old store or the new one, never in between",
        f"{killed} kills: {_counted(found.phases)}",
        killed > 0 and not found.problems,
        found.problems,
        {"kills": killed, "phases": dict(found.phases), "leftovers": found.leftovers},
    )


def random_kills(folder: Path, sizes: Sizes, log: Log) -> Iterable[Shown]:
    """Kill workers and supervisors."""
    found = kills.torture(
        folder, sizes.kills, sizes.seed, lifetimes=sizes.lifetimes, seeds=sizes.seeds, log=log
    )
    runs = 8 * sizes.seeds
    yield Shown(
        f"{sizes.kills} SIGKILLs: {runs}/{runs} science hashes as undisturbed, no partial record",
        f"{found.kills} kills ({_counted(found.instants)} at random instants; "
        f"{_counted(found.phases)}), {found.campaigns} campaigns, "
        f"{found.complete} × {runs}/{runs} equal, {found.checks} checks of all visible records",
        found.kills >= sizes.kills and found.complete > 0 and not found.problems,
        found.problems,
        vars(found) | {"kills": found.kills},
    )


def all_orders(folder: Path, sizes: Sizes, _: Log) -> Iterable[Shown]:
    """Run the grid in other ways."""
    found = orders.torture(folder, orders.ways(sizes.lifetimes, sizes.seeds))
    yield Shown(
        "workers and order change no science hash",
        f"{found.runs} runs, equal in: {'; '.join(found.ways)}",
        not found.different,
        [f"{way}: run {run} differs" for way, runs in found.different.items() for run in runs],
        found._asdict(),
    )


def damage(folder: Path, sizes: Sizes, _: Log) -> Iterable[Shown]:
    """Flip bits and truncate files."""
    found = flips.torture(
        folder, sizes.damages, sizes.seed, lifetimes=sizes.lifetimes, seeds=sizes.seeds
    )
    caught = found.detected.total()
    yield Shown(
        f"{sizes.damages} bit flips and truncations: all detected, damaged runs redone",
        f"{caught}/{found.damages} detected ({_counted(found.detected)}), {found.redone} runs "
        f"redone, equal; {(found.flips + found.truncations)[flips.NOTES]} damaged notes harmless",
        caught == found.damages >= sizes.damages and not found.problems,
        found.problems,
        vars(found),
    )


def many_writers(folder: Path, sizes: Sizes, _: Log) -> Iterable[Shown]:
    """Commit the same runs from many processes."""
    found = writers.torture(folder, sizes.writers, sizes.commits)
    once = sum(count == 1 for count in found.won.values())
    yield Shown(
        f"{sizes.writers} processes commit {sizes.commits} runs: each exactly once",
        f"{once}/{len(found.won)} runs exactly once, of {found.commits:,} commits",
        once == len(found.won) == sizes.commits and not found.problems,
        found.problems,
        {"commits": found.commits, "once": once, "leftovers": found.leftovers},
    )


def bad_disks(folder: Path, sizes: Sizes, _: Log) -> Iterable[Shown]:
    """Run commands with disk errors."""
    found = faults.torture(folder, sizes.commands)
    skipped = "".join(f"; not run: {what}" for what in found.skipped)
    yield Shown(
        "disk full, read-only, EIO at every step: store unchanged, error names the path",
        f"{found.faults.total()} faults ({_counted(found.faults)}), {found.committed} after the "
        f"record was in place, whole{skipped}",
        found.faults.total() > 0 and not found.problems,
        found.problems,
        vars(found),
    )


def many_records(folder: Path, sizes: Sizes, log: Log) -> Iterable[Shown]:
    """Fill a store with made-up records."""
    few = large_store.torture(folder / "few", sizes.few_records, log)
    many = large_store.torture(folder / "many", sizes.records, log)
    figures = {"few": _plain(few), "many": _plain(many)}
    for what, cost, limit in (
        ("status", many.status, 3.0),
        ("records query over all logs, indexed", many.query, 10.0),
        ("records query over all logs, 10 records new", many.query_after_ten, 10.0),
    ):
        yield Shown(
            f"{sizes.records:,} records: {what} under {limit:g} s and 1 GB",
            f"{cost.seconds:.2f} s, {cost.memory:.0f} MB",
            cost.seconds < limit and cost.memory < 1000,
            [],
            figures,
        )
    each = [1000 * one.first_query.seconds / one.records for one in (few, many)]
    yield Shown(
        f"cost of a record flat from {sizes.few_records:,} to {sizes.records:,}",
        f"to index {each[0]:.2f} ms, then {each[1]:.2f} ms; "
        f"to commit {few.commit:.1f} ms, then {many.commit:.1f} ms",
        each[1] < 1.25 * each[0],
        [],
        {"index_ms": each},
    )


def two_workers(folder: Path, _: Sizes, __: Log) -> Iterable[Shown]:
    """Measure the speed of two workers."""
    found = throughput.torture(folder)
    yield Shown(
        "2 workers at least 1.8 times as fast as 1 on Disco lifetimes",
        f"{found.ratio:.2f} times ({', '.join(f'{ratio:.2f}' for ratio in found.ratios)}) with "
        f"{found.rule}; load of the machine at the start {found.load:.1f}",
        found.ratio >= 1.8,
        [],
        found._asdict(),
    )


PARTS: dict[str, Callable[[Path, Sizes, Log], Iterable[Shown]]] = {
    "points": every_point,
    "faults": bad_disks,
    "writers": many_writers,
    "orders": all_orders,
    "flips": damage,
    "kills": random_kills,
    "scale": many_records,
    "throughput": two_workers,
}
"""By the names of the command line. Those that fork come first, while there is one thread."""


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.most_common())


def _plain(costs: large_store.Costs) -> dict[str, Any]:
    return {
        name: value._asdict() if isinstance(value, large_store.Cost) else value
        for name, value in costs._asdict().items()
    }
