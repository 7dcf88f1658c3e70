"""Run many specs on this machine: worker processes of one thread each, reused across runs.

Workers only turn specs into records in the store. Running the same specs again does what is
missing: resuming is not a feature of the engine, it is what the store makes true.
"""

from __future__ import annotations

import heapq
import multiprocessing
import os
import queue
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from rulescope import runner, spec
from rulescope.lifetime import Progress
from rulescope.records import Store
from rulescope.spec import RunSpec

POLL_SECONDS = 0.5
ATTEMPTS = 3
"""How often a run may be under way when a worker is killed; it goes on from its checkpoint."""


@dataclass
class Campaign:
    """Where a set of runs stands."""

    total: int
    """Iterations of all runs together, those found in the store included."""
    done: int = 0
    """Iterations made or found."""
    runs: int = 0
    finished: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Run id to the cause."""


def run_all(
    specs: Iterable[RunSpec],
    store: Store,
    *,
    workers: int | None = None,
    report: Callable[[Campaign], None] | None = None,
    weights: Path | None = None,
) -> Campaign:
    """Bring the record of every spec into ``store``; a failed run is reported, others go on.

    Donors are runs like any other: they are added, and come first.
    """
    wanted = spec.with_donors(map(spec.checked, specs))
    missing = {key: item for key, item in wanted.items() if key not in store}
    campaign = Campaign(sum(item.iterations for item in wanted.values()), runs=len(wanted))
    campaign.finished = len(wanted) - len(missing)
    found = campaign.total - sum(item.iterations for item in missing.values())
    campaign.done = found
    if missing:
        _work(missing, store, workers or os.cpu_count() or 1, report, weights, campaign, found)
    return campaign


def _work(
    missing: dict[str, RunSpec],
    store: Store,
    workers: int,
    report: Callable[[Campaign], None] | None,
    weights: Path | None,
    campaign: Campaign,
    found: int,
) -> None:
    crew = _Crew(missing, store, min(workers, len(missing)), weights)
    reached: dict[str, int] = {}
    try:
        while crew.busy():
            for key, fault in crew.ended():
                if fault is None:
                    reached[key] = missing[key].iterations
                    campaign.finished += 1
                else:
                    campaign.failed[key] = f"{type(fault).__name__}: {fault}"
            _drain(crew.news, reached)
            campaign.done = found + sum(reached.values())
            if report is not None:
                report(campaign)
        _fail_orphans(missing, campaign)
    except BaseException:
        crew.stop.set()
        raise
    finally:
        crew.pool.shutdown(cancel_futures=True)


class _Crew:
    """The worker processes, and which run each of them has; donors come first."""

    def __init__(
        self, missing: dict[str, RunSpec], store: Store, workers: int, weights: Path | None
    ) -> None:
        self._missing, self._store, self._workers, self._weights = missing, store, workers, weights
        self._context = multiprocessing.get_context("spawn")
        self._hire()
        self._running: dict[Future[Any], str] = {}
        self._order = _donors_first(missing)
        self._place = {key: turn for turn, key in enumerate(missing)}
        self._ready: list[tuple[int, str]] = []
        self._lost: Counter[str] = Counter()

    def _hire(self) -> None:
        """Start new workers, with new means to talk to them: a killed one may hold a lock."""
        self.news: multiprocessing.Queue[tuple[str, int]] = self._context.Queue()
        self.stop = self._context.Event()
        setting = (self.news, self.stop, self._store.root, self._weights)
        self.pool = ProcessPoolExecutor(self._workers, self._context, _start, setting)

    def busy(self) -> bool:
        """Hand out what is ready; tell whether anything is being lived."""
        for key in self._order.get_ready():
            heapq.heappush(self._ready, (self._place[key], key))
        # No more than can be worked on at once: what becomes ready later may have to come first.
        while self._ready and len(self._running) < self._workers:
            _, key = heapq.heappop(self._ready)
            self._running[self.pool.submit(_live, spec.canonical(self._missing[key]))] = key
        return bool(self._running)

    def ended(self) -> Iterator[tuple[str, BaseException | None]]:
        """Wait a moment; yield the runs that have ended since, and what went wrong if anything."""
        done, _ = wait(self._running, POLL_SECONDS, FIRST_COMPLETED)
        for future in done:
            fault = future.exception()
            if isinstance(fault, BrokenProcessPool):
                yield from self._begin_again(fault)
                return
            key = self._running.pop(future)
            if fault is None:
                self._order.done(key)
            yield key, fault

    def _begin_again(self, fault: BaseException) -> Iterator[tuple[str, BaseException]]:
        """Replace all workers after one was killed; a run under way too often then has failed."""
        self.pool.shutdown(cancel_futures=True)
        self._hire()
        for key in self._running.values():
            self._lost[key] += 1
            if self._lost[key] < ATTEMPTS:
                heapq.heappush(self._ready, (self._place[key], key))
            else:
                yield key, fault
        self._running.clear()


def _donors_first(missing: dict[str, RunSpec]) -> TopologicalSorter[str]:
    """Return an order in which every run comes after its donors."""
    order = TopologicalSorter(
        {
            key: [donor.id for donor in item.donors if donor.id in missing]
            for key, item in missing.items()
        }
    )
    order.prepare()
    return order


def _fail_orphans(missing: dict[str, RunSpec], campaign: Campaign) -> None:
    """Count the runs as failed that could not begin because a donor of theirs failed."""
    for key, item in missing.items():  # in which donors come before those who need them
        failed = [donor.id for donor in item.donors if donor.id in campaign.failed]
        if failed:
            campaign.failed[key] = f"its donor {failed[0][:12]} failed"


def _drain(news: multiprocessing.Queue[tuple[str, int]], reached: dict[str, int]) -> None:
    while True:
        try:
            key, iteration = news.get_nowait()
        except queue.Empty:
            return
        reached[key] = max(iteration, reached.get(key, 0))


class _Worker:
    """What a worker process keeps between runs."""

    news: multiprocessing.Queue[tuple[str, int]]
    stop: Event
    store: Store
    weights: Path | None


def _start(
    news: multiprocessing.Queue[tuple[str, int]], stop: Event, root: Path, weights: Path | None
) -> None:
    # Ctrl-C reaches every process of the terminal. An idle worker leaves it to the parent, which
    # sets ``stop``; in a running one the runner answers, with a checkpoint.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Worker.news, _Worker.stop, _Worker.store, _Worker.weights = news, stop, Store(root), weights


def _live(canonical: bytes) -> str:
    """Make one record, in a worker; tell of progress about once a second."""
    if _Worker.stop.is_set():  # this run was handed out before the others were called off
        raise KeyboardInterrupt
    item = spec.decode(canonical)
    last = time.monotonic()

    def tell(progress: Progress) -> None:
        nonlocal last
        if _Worker.stop.is_set():
            signal.raise_signal(signal.SIGINT)  # the runner answers with a checkpoint
        if time.monotonic() - last >= 1.0:
            _Worker.news.put((item.id, progress.iteration))
            last = time.monotonic()

    runner.find_or_make(item, _Worker.store, report=tell, weights=_Worker.weights)
    return item.id
