"""The Ray engine: many specs run on a Ray cluster, or on a Ray of this machine alone.

Workers are actors with one run at a time; runs that wait, wait here. The cluster needs no shared
disk: runs are sent as bytes, and records and checkpoints return as bytes and are committed to the
store here. A lost node therefore costs what its runs did since their last checkpoint, about a
minute, and nothing else.

Ray provides places and messages only. The engine retries, as with local processes: Ray would start
from the first arguments again, and forget the cause.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rulescope.engine import resources
from rulescope.engine.campaign import Campaign
from rulescope.engine.ray_pool import RayPool, Share, summarize
from rulescope.engine.scheduler import Report, run_campaign
from rulescope.engine.worker_pool import EngineError, Timeouts
from rulescope.records import Store
from rulescope.run_spec import RunSpec

__all__ = ["Campaign", "EngineError", "Share", "Timeouts", "require", "require_ray", "run_all"]

CONNECT_SECONDS = 10.0
"""Time that the head of a cluster has to answer."""


def run_all(
    specs: Iterable[RunSpec],
    store: Store,
    *,
    workers: int | None = None,
    report: Report | None = None,
    weights: Path | None = None,
    timeouts: Timeouts | None = None,
    name: str = "",
    force: bool = False,
    address: str | None = None,
    share: Share = Share(),  # noqa: B008  # immutable
) -> Campaign:
    """Do as :func:`rulescope.engine.local_engine.run_all` does, on the Ray cluster at ``address``.

    Without an address this uses the cluster that the caller, or ``RAY_ADDRESS``, has connected
    this process to, else a Ray of this machine alone, which ends with the campaign. ``workers`` is
    the largest number of runs at once: by default as many as the nodes have ``share`` for.
    """
    require_ray()
    share.require_possible()
    with ExitStack() as connection:

        def make_pool(missing: dict[str, RunSpec]) -> RayPool:
            if not force:
                require(missing.values(), store, workers, share)
            rules = _read_weights(missing.values(), weights)
            connection.enter_context(_connected(address, workers, share))
            memory = (
                0
                if force
                else max(resources.estimate(spec, share.device).memory for spec in missing.values())
            )
            pool = RayPool(workers, store, rules, share, memory, timeouts or Timeouts())
            if not force:
                pool.require_room()
            return pool

        return run_campaign(specs, store, make_pool, report, name)


def require(missing: Iterable[RunSpec], store: Store, workers: int | None, share: Share) -> None:
    """Raise :class:`EngineError` if ``missing`` cannot be run, as far as this machine knows.

    Whether a node has room for a run is known only once the cluster is connected.
    """
    share.require_possible()
    resources.require_disk(missing, workers or 1, store.root)


def require_ray() -> None:
    """Raise :class:`EngineError` unless Ray is installed."""
    if importlib.util.find_spec("ray") is None:
        raise EngineError("the Ray engine needs Ray: pip install 'rulescope[ray]'")


@contextmanager
def _connected(address: str | None, workers: int | None, share: Share) -> Iterator[None]:
    """Connect to a cluster, or start a Ray of this machine, unless the caller has done so."""
    # Ray prints pages about a lost node to the standard output, which is for results. (Causes are
    # kept all the same.) It reads this variable when it is imported.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    import ray

    if ray.is_initialized():
        if address is not None:
            raise EngineError(f"address {address!r}: this process is connected to a Ray already")
        yield
        return
    place = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if place == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
        options["include_dashboard"] = False
        options["num_cpus"] = None if workers is None else math.ceil(workers * share.cpus)
    before = signal.getsignal(signal.SIGTERM)
    try:
        _check_address(place)
        ray.init(place, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as fault:
        problem = summarize(fault)
        raise EngineError(f"no Ray cluster can be reached at {place!r}: {problem}") from None
    try:
        yield
    except ray.exceptions.RayError as fault:  # the pool handles lost workers: this is the head
        raise EngineError(f"the Ray cluster at {place!r} is lost: {summarize(fault)}") from None
    finally:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray has replaced it


def _check_address(address: str) -> None:
    """Raise ``OSError`` if nothing answers at ``address``: Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
            pass


def _read_weights(specs: Iterable[RunSpec], folder: Path | None) -> dict[str, bytes]:
    """Return the weights files of all released rules in ``specs``, for nodes without them."""
    from rulescope.rules import released_rules, weight_files

    named = {getattr(spec.learner, "rule", "") for spec in specs}
    released = [rule for name, rule in released_rules.RULES.items() if name in named]
    return {rule.name: weight_files.ensure(rule, folder).read_bytes() for rule in released}
