"""Estimates of the disk and memory that runs need, checked before a campaign starts.

An estimate is an upper bound from the spec alone: everything stored has its largest size, and
nothing is compressed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from rulescope.engine.branch_plan import plan_branches
from rulescope.engine.worker_pool import EngineError
from rulescope.envs.world_config import Catch, DeepSea, EnvironmentSpec, MinAtar, Tracking
from rulescope.learners.baseline_config import RandomPolicy
from rulescope.records.sizes import readable
from rulescope.run_spec import RunSpec

PROCESS = 330_000_000
"""Bytes of memory of an idle worker that has imported everything (300 to 320 MB measured)."""
RESERVE = 50_000_000
"""Bytes of disk that are left free."""
_RECORD = 20_000
"""Bytes of a record's manifest and of the headers of its files."""
_COLUMNS = 40
"""Columns of a log; more than any learner has."""
_NUMBER = 4
"""Bytes of a float32."""


class Need(NamedTuple):
    """Bytes that a run takes at most."""

    record: int
    checkpoint: int
    memory: int
    """Main memory of its worker; that of a GPU is not counted."""


def estimate(spec: RunSpec, device: str = "cpu") -> Need:
    """Return upper bounds of what ``spec`` takes if its learner computes on ``device``."""
    parameters = _NUMBER * _count_parameters(spec)
    replay = _replay_bytes(spec)
    checkpoint = spec.learner.network_copies * parameters + replay + 100_000
    log = 8 * _COLUMNS * (spec.iterations // spec.log_every)
    large = {"params": parameters, "target": parameters, "moments": 2 * parameters}
    kept = sum((large | {"replay": replay}).get(name, 100_000) for name in spec.kept)
    # A checkpoint is a copy of the state, and packing it makes another.
    workspace = _workspace_bytes(spec) if device == "cpu" else 0  # on a GPU it is in its memory
    memory = PROCESS + workspace + 3 * checkpoint
    return Need(_RECORD + log + kept + len(spec.marks) * checkpoint, checkpoint, memory)


def require(specs: Iterable[RunSpec], workers: int, root: Path, device: str = "cpu") -> None:
    """Raise :class:`EngineError` if disk at ``root`` or memory would not suffice for ``specs``.

    Limits that this system does not report, and the memory of a GPU, are not checked.
    """
    specs = list(specs)
    require_disk(specs, workers, root, _branch_bytes(specs, workers))
    _require_memory([estimate(spec, device) for spec in specs], workers)


def _branch_bytes(specs: Iterable[RunSpec], workers: int) -> int:
    """Return the bytes of the branch checkpoints that exist at once.

    A run from a branch starts before any other, so they are those of one group for each worker.
    """
    known = {spec.id: spec for spec in specs}
    plan = plan_branches(known)
    groups = [
        sum(len(plan.users(run)) * estimate(known[run]).checkpoint for run in group)
        for group in plan.groups
    ]
    return sum(sorted(groups, reverse=True)[:workers])


def require_disk(specs: Iterable[RunSpec], workers: int, root: Path, branches: int = 0) -> None:
    """Raise :class:`EngineError` if the disk at ``root`` has no room for ``specs``.

    ``branches`` are the bytes of branch checkpoints.
    """
    needs = [estimate(spec) for spec in specs]
    # A new checkpoint is complete before it replaces the one before.
    largest = sorted((each.checkpoint for each in needs), reverse=True)[:workers]
    wanted = sum(each.record for each in needs) + 2 * sum(largest) + branches + RESERVE
    free = free_disk(root)
    if free is not None and free < wanted:
        raise EngineError(
            f"{root}: {len(needs)} runs need about {readable(wanted)} of disk at most, and "
            f"{readable(free)} are free; free some, choose another store (--store), or use --force"
        )


def _require_memory(needs: list[Need], workers: int) -> None:
    each = max((one.memory for one in needs), default=0)
    available = free_memory()
    if available is None or workers * each <= available:
        return
    fit = available // each
    way = f"--workers {fit} would fit" if fit else "not even one fits"
    raise EngineError(
        f"memory: {workers} worker{'s' * (workers > 1)} of about {readable(each)} each need "
        f"{readable(workers * each)}, and {readable(available)} are available; {way} "
        "(or --force)"
    )


def free_disk(root: Path) -> int | None:
    """Return the free bytes of the disk on which ``root`` is, or will be; None if unknown."""
    place = root.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        return shutil.disk_usage(place).free
    except OSError:
        return None


def free_memory() -> int | None:
    """Return the memory in bytes for new processes, within a container's limit; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        available = 1024 * int(facts["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None
    return min([available, *_container_memory()])


def cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return how many processors this process may use: those of its affinity, within its quota."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        count = os.cpu_count() or 1
    try:
        share, period = map(int, quota.read_text().split())  # "max" is not a number: no limit
        return max(min(count, share // period), 1)
    except (OSError, ValueError):
        return count


class _Groups(NamedTuple):
    """The files of one version of control groups: limit, use, and the reclaimable part of it."""

    folder: str
    limit: str
    used: str
    inactive: str


_V2 = _Groups("", "memory.max", "memory.current", "inactive_file")
_V1 = _Groups("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _container_memory(
    own: Path = Path("/proc/self/cgroup"), top: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """Yield the bytes that each limit of this process's control groups leaves."""
    try:
        memberships = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    for number, kinds, path in memberships:
        groups = _V2 if number == "0" else _V1
        if number == "0" or "memory" in kinds.split(","):
            base = top / groups.folder
            folder = base / path.strip("/")
            while folder.is_relative_to(base):  # a parent's limit applies too
                yield from _remaining(folder, groups)
                folder = folder.parent


def _remaining(folder: Path, groups: _Groups) -> Iterator[int]:
    try:
        limit = int((folder / groups.limit).read_text())  # "max" is not a number: no limit
        used = int((folder / groups.used).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        yield max(limit - used + int(stat.get(groups.inactive, 0)), 0)
    except (OSError, ValueError):
        return


# Sizes that follow from a spec


def _observation_size(world: EnvironmentSpec) -> int:
    """Return the number of values in an observation."""
    match world:
        case DeepSea(depth=depth):
            return depth * depth
        case MinAtar():
            return 10 * 10 * 10  # the most channels of any game
        case Tracking(columns=columns):
            return 3 * columns
        case _:
            rows, columns = getattr(world, "rows", 64), getattr(world, "columns", 64)
            return int(rows * columns)


def _count_distinct(world: EnvironmentSpec) -> float:
    """Return the number of distinct observations; a replay buffer keeps each once."""
    match world:
        case Catch(rows=rows, columns=columns):
            return rows * columns * columns
        case DeepSea(depth=depth):
            return 2 * depth * depth
        case _:
            return float("inf")


def _count_parameters(spec: RunSpec) -> int:
    """Return the approximate number of parameters of the learner's network."""
    learner = spec.learner
    if isinstance(learner, RandomPolicy):
        return 0
    sizes = learner.agent
    first, second = sizes.hidden
    seen = _observation_size(spec.environment)
    if sizes.torso == "channel":
        torso = 9 * sizes.channels * 10 + sizes.channels * 100 * second
    else:
        torso = seen * first + first * second
    return torso + second * learner.outputs


def _replay_bytes(spec: RunSpec) -> int:
    """Return the bytes of a full replay buffer."""
    replay, size = spec.learner.replay(spec.lanes, spec.steps), _observation_size(spec.environment)
    if replay is None:
        return 0
    held = min(replay.capacity, spec.iterations * replay.per_iteration) * replay.observations
    distinct = min(held, _count_distinct(spec.environment))
    return int(distinct * size * _NUMBER) + held * replay.overhead


def _workspace_bytes(spec: RunSpec) -> int:
    """Return the bytes of intermediate results of an update."""
    return spec.learner.workspace(spec.lanes, spec.steps)
