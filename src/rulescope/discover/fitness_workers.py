"""Evaluation of candidates in worker processes.

The unit of work is fixed by the specification and its result depends on nothing else, so results
are the same bits whatever the number of workers.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from types import TracebackType
from typing import NamedTuple, Self

from rulescope.core import runtime
from rulescope.core.errors import PassingError
from rulescope.core.signals import SIGNALS
from rulescope.discover.batched_lifetimes import Vectors, evaluate
from rulescope.discover.discovery_spec import World
from rulescope.discover.evolution_spec import Evolution
from rulescope.engine.process_pool import refuse_rerun_script


class WorkerLostError(PassingError):
    """A worker process ended; the discovery continues from its checkpoint when started again."""


class Task(NamedTuple):
    """Candidates that are evaluated together."""

    spec: Evolution
    worlds: tuple[World, ...]
    weights: Vectors
    """[C, D]"""
    updates: int
    seed: int

    def scores(self) -> Vectors:
        """Return the scores [C, W]."""
        return evaluate(*self)


class Evaluators:
    """Evaluates tasks in ``workers`` processes, or in this one if there is only one."""

    def __init__(self, workers: int = 1) -> None:
        self._workers = workers
        self.pool: ProcessPoolExecutor | None = None

    def evaluate(self, tasks: Sequence[Task]) -> list[Vectors]:
        """Return the scores [C, W] of every task."""
        if self._workers == 1:
            return [task.scores() for task in tasks]
        try:
            return list(self._started().map(Task.scores, tasks))
        except BrokenProcessPool:
            raise WorkerLostError(
                "a worker process of the discovery was killed, perhaps because memory ran out; "
                "start the command again to continue from the checkpoint"
            ) from None

    def _started(self) -> ProcessPoolExecutor:
        if self.pool is None:
            refuse_rerun_script()
            context = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(self._workers, context, _prepare_worker)
        return self.pool

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)


def _prepare_worker() -> None:
    """Leave signals to the main process, which ends the workers; one thread each."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    # A main process that is killed cannot end its workers, which would wait forever.
    threading.Thread(target=_exit_with, args=(parent.sentinel,), daemon=True).start()
    runtime.single_threaded()


def _exit_with(sentinel: int) -> None:
    """End this process when the process of ``sentinel`` has ended."""
    wait([sentinel])
    os._exit(1)
