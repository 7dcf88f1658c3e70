"""Status files of running campaigns, on this machine or another: ``campaigns/*.json`` of a store.

A running campaign replaces its file every few seconds and removes it at the end. A file that is
older than a minute, or whose process has ended, is stale.
"""

from __future__ import annotations

import logging
import math
import os
import platform
import time
import uuid
from contextlib import suppress
from typing import Self

import msgspec

from rulescope.core import disk
from rulescope.core.errors import RulescopeError
from rulescope.engine.campaign import Campaign
from rulescope.records import Store
from rulescope.records.store_layout import process_exists, read_optional

_log = logging.getLogger(__name__)

WRITE_SECONDS = 3.0
STALE_SECONDS = 60.0
FOLDER = "campaigns"


class RunStatus(msgspec.Struct, frozen=True):
    """A run in progress."""

    id: str
    iteration: int
    iterations: int
    rate: float
    attempt: int = 1


class CampaignStatus(msgspec.Struct, frozen=True):
    """The content of a status file; times are seconds since 1970."""

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
    running: tuple[RunStatus, ...] = ()
    failed: dict[str, str] = {}

    @property
    def stale(self) -> bool:
        """Whether the campaign has ended without removing its file."""
        if time.time() - self.updated > STALE_SECONDS:
            return True
        return self.host == platform.node() and not process_exists(self.pid)


class StatusFile:
    """Publishes the progress of ``campaign`` while entered.

    A full disk or a lost network must not end a campaign: failed writes are logged once and
    skipped.
    """

    def __init__(self, store: Store, campaign: Campaign, name: str = "") -> None:
        self._store, self._campaign, self._name = store, campaign, name
        self._host, self._pid, self._started = platform.node(), os.getpid(), time.time()
        host = "".join(c if c.isalnum() else "-" for c in self._host)[:40] or "host"
        file = f"{host}-{self._pid}-{uuid.uuid4().hex[:8]}.json"
        self._path = store.inside(FOLDER) / file
        self._written = -math.inf
        self._warned = False

    def __enter__(self) -> Self:
        load(self._store)  # which removes stale files
        self.update()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def update(self) -> None:
        """Write the file unless it was written less than :data:`WRITE_SECONDS` ago."""
        if time.monotonic() - self._written < WRITE_SECONDS:
            return
        self._written = time.monotonic()
        try:
            self._store.replace_file(self._path, msgspec.json.encode(self._status()))
        except RulescopeError as fault:
            if not self._warned:
                _log.warning("%s", fault)
            self._warned = True

    def _status(self) -> CampaignStatus:
        campaign = self._campaign
        return CampaignStatus(
            host=self._host,
            pid=self._pid,
            started=self._started,
            updated=time.time(),
            name=self._name,
            workers=campaign.workers,
            runs=campaign.runs,
            finished=campaign.finished,
            iterations=campaign.total,
            done=campaign.done,
            rate=campaign.rate,
            seconds_left=campaign.seconds_left,
            stopping=campaign.stopping,
            running=tuple(
                RunStatus(run, now.iteration, now.iterations, now.rate, now.attempt)
                for run, now in campaign.running.items()
            ),
            failed=dict(campaign.failed),
        )


def load(store: Store) -> list[CampaignStatus]:
    """Return the running campaigns in the order of their start.

    Stale files are removed unless the store is read-only.
    """
    found = []
    for path in disk.listed(store.inside(FOLDER)):
        if path.suffix != ".json":
            continue
        try:
            status = msgspec.json.decode(read_optional(path) or b"", type=CampaignStatus)
        except (UnicodeDecodeError, msgspec.MsgspecError):
            continue  # removed meanwhile, or not a status file
        if not status.stale:
            found.append(status)
        elif not store.read_only:
            with suppress(OSError):
                path.unlink()
    return sorted(found, key=lambda status: status.started)
