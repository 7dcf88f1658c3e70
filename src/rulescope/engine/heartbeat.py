"""Campaigns that are running now, on this machine or another: ``campaigns/*.json`` of a store.

A running campaign replaces its file every few seconds and removes it at the end. One whose process
is dead, or which is older than a minute, is nobody's.
"""

from __future__ import annotations

import logging
import math
import os
import platform
import time
import uuid
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from rulescope.core import disk
from rulescope.core.errors import RulescopeError
from rulescope.engine.campaign import Campaign
from rulescope.engine.failures import replace
from rulescope.records import Store
from rulescope.records.staging import alive
from rulescope.records.store_layout import note

_log = logging.getLogger(__name__)

WRITE_SECONDS = 3.0
STALE_SECONDS = 60.0
FOLDER = "campaigns"


class LiveRun(msgspec.Struct, frozen=True):
    """A run under way."""

    id: str
    iteration: int
    iterations: int
    rate: float
    attempt: int = 1


class LiveCampaign(msgspec.Struct, frozen=True):
    """What a running campaign says of itself; times are seconds since 1970."""

    host: str
    pid: int
    started: float
    updated: float
    name: str = ""
    workers: int = 0
    runs: int = 0
    finished: int = 0
    iterations: int = 0
    done: int = 0
    rate: float = 0.0
    seconds_left: float | None = None
    stopping: bool = False
    running: tuple[LiveRun, ...] = ()
    failed: dict[str, str] = {}

    @property
    def stale(self) -> bool:
        """Whether it has ended without saying so."""
        if time.time() - self.updated > STALE_SECONDS:
            return True
        return self.host == platform.node() and not alive(self.pid)


class Announcement:
    """While entered, tells readers of the store where ``campaign`` stands.

    That the disk is full or the network away for a while is no reason to end a campaign: what
    cannot be written is left out.
    """

    def __init__(self, store: Store, campaign: Campaign, name: str = "") -> None:
        self._store, self._campaign, self._name = store, campaign, name
        self._host, self._pid, self._started = platform.node(), os.getpid(), time.time()
        file = f"{_plain(self._host)}-{self._pid}-{uuid.uuid4().hex[:8]}.json"
        self._path = store.inside(FOLDER) / file
        self._written = -math.inf
        self._warned = False

    def __enter__(self) -> Self:
        running(self._store)  # which removes what dead campaigns have left behind
        self.update()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def update(self) -> None:
        """Write where it stands, if that is a while ago."""
        if time.monotonic() - self._written < WRITE_SECONDS:
            return
        self._written = time.monotonic()
        try:
            replace(self._store, self._path, msgspec.json.encode(self._state()))
        except RulescopeError as fault:
            if not self._warned:
                _log.warning("%s", fault)
            self._warned = True

    def _state(self) -> LiveCampaign:
        now = self._campaign
        return LiveCampaign(
            host=self._host,
            pid=self._pid,
            started=self._started,
            updated=time.time(),
            name=self._name,
            workers=now.workers,
            runs=now.runs,
            finished=now.finished,
            iterations=now.total,
            done=now.done,
            rate=now.rate,
            seconds_left=now.seconds_left,
            stopping=now.stopping,
            running=tuple(
                LiveRun(key, run.iteration, run.iterations, run.rate, run.attempt)
                for key, run in now.running.items()
            ),
            failed=dict(now.failed),
        )


def running(store: Store) -> list[LiveCampaign]:
    """Return the campaigns that are running, in the order of their beginning.

    Files of campaigns that are not are removed, unless the store is only read.
    """
    found = []
    for path in disk.listed(store.inside(FOLDER)):
        if path.suffix != ".json":
            continue
        try:
            state = msgspec.json.decode(note(path) or b"", type=LiveCampaign)
        except (UnicodeDecodeError, msgspec.MsgspecError):
            continue  # gone meanwhile, or nothing of ours
        if not state.stale:
            found.append(state)
            continue
        if not store.read_only:
            with suppress(OSError):
                path.unlink()
    return sorted(found, key=lambda state: state.started)


def _plain(host: str) -> str:
    """Return a host name that can be part of a file name."""
    return "".join(letter if letter.isalnum() else "-" for letter in host)[:40] or "host"
