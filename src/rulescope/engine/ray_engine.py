"""Run many specs on a Ray cluster, or on a Ray of this machine alone.

Workers are actors that live one run at a time and are never given another before: what waits, waits
here. Nothing is shared but the cluster: runs go out as bytes, and records and checkpoints come back
as bytes and reach the store through its front door. A lost node therefore costs what its runs did
since their last checkpoint, a minute or so, and nothing else.

Ray is only asked for places and messages. Trying again is left to the engine, as with processes:
Ray would begin from what it was given at first, and forget why.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rulescope.core import runtime
from rulescope.engine import resources
from rulescope.engine.campaign import Campaign
from rulescope.engine.pool import Crew, EngineError, Patience
from rulescope.engine.process_pool import THREADS
from rulescope.engine.ray_actor import Remote
from rulescope.engine.ray_member import Actor, shortly
from rulescope.engine.scheduler import Report, carry_out
from rulescope.records import Store
from rulescope.records.sizes import readable
from rulescope.spec.run_spec import RunSpec

COUNT_SECONDS = 5.0
"""How often the places of a cluster are counted: nodes come and go."""
ANSWER_SECONDS = 10.0
"""How long the head of a cluster may take to answer."""


class Share(NamedTuple):
    """What a run takes of a node; fractions let several share a core or a GPU."""

    cpus: float = 1.0
    gpus: float = 0.0
    """If more than 0, runs are lived on a GPU."""

    def require_possible(self) -> None:
        """Raise :class:`EngineError` if no node could give this share."""
        if self.cpus <= 0.0 or self.gpus < 0.0 or (self.gpus > 1.0 and self.gpus % 1.0):
            raise EngineError(
                f"{self.cpus:g} CPU, {self.gpus:g} GPU: a run takes more than no core, and a part "
                "of a GPU or whole ones"
            )


def run_all(
    specs: Iterable[RunSpec],
    store: Store,
    *,
    workers: int | None = None,
    report: Report | None = None,
    weights: Path | None = None,
    patience: Patience | None = None,
    name: str = "",
    force: bool = False,
    address: str | None = None,
    share: Share = Share(),  # noqa: B008  # immutable
) -> Campaign:
    """Do as :func:`rulescope.engine.local_engine.run_all` does, on the Ray cluster at ``address``.

    Without an address that is the one that the caller, or ``RAY_ADDRESS``, has connected this
    process to, else a Ray of this machine alone, which ends with the campaign. ``workers`` is how
    many runs there may be at once: by default as many as the nodes have ``share`` for.
    """
    require_ray()
    share.require_possible()
    with ExitStack() as connection:

        def enlist(missing: dict[str, RunSpec]) -> Cluster:
            if not force:
                require(missing.values(), store, workers, share)
            rules = _weights(missing.values(), weights)
            connection.enter_context(_connected(address, workers, share))
            memory = 0 if force else max(resources.need(s).memory for s in missing.values())
            crew = Cluster(workers, store, rules, share, memory, patience or Patience())
            if not force:
                crew.require_room()
            return crew

        return carry_out(specs, store, enlist, report, name)


def require(missing: Iterable[RunSpec], store: Store, workers: int | None, share: Share) -> None:
    """Raise :class:`EngineError` if ``missing`` cannot be run, as far as this machine can tell.

    Whether a node has room for a run is known only to the cluster, once it is connected to.
    """
    share.require_possible()
    resources.require_disk(missing, workers or 1, store.root)


def require_ray() -> None:
    """Raise :class:`EngineError` unless Ray is installed."""
    if importlib.util.find_spec("ray") is None:
        raise EngineError("the Ray engine needs Ray: pip install 'rulescope[ray]'")


class Cluster(Crew):
    """Workers on the cluster that this process is connected to."""

    HERE = False

    def __init__(
        self,
        workers: int | None,
        store: Store,
        weights: dict[str, bytes],
        share: Share,
        memory: int,
        patience: Patience,
    ) -> None:
        # A worker that waits for a place on a node does not hang, however long that takes.
        super().__init__(patience._replace(starting=math.inf))
        import ray

        self._workers, self._store = workers, store
        self._asked = {"CPU": share.cpus, "GPU": share.gpus, "memory": float(memory)}
        self._facts = (runtime.program_name(), ray.put(weights), "cuda" if share.gpus else "cpu")
        remote: Any = ray.remote  # not all of its options are known to its types
        self._remote = remote(
            num_cpus=share.cpus,
            num_gpus=share.gpus,
            memory=memory,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=2,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": dict.fromkeys(THREADS, "1")},
        )(Remote)
        self._places, self._counted = 0, -math.inf
        self.members: list[Actor] = []  # type: ignore[assignment]  # no others here

    @property
    def size(self) -> int:
        """How many runs there may be at once."""
        if self._workers is not None:
            return self._workers
        if time.monotonic() - self._counted > COUNT_SECONDS:
            self._places, self._counted = sum(map(self._room, _nodes())), time.monotonic()
        return max(self._places, 1)

    def require_room(self) -> None:
        """Raise :class:`EngineError` if no node could ever take a run."""
        nodes = _nodes()
        if not any(map(self._room, nodes)):
            nodes.sort(key=lambda node: (node.get("GPU", 0.0), node.get("CPU", 0.0)), reverse=True)
            largest = "; ".join(map(_told, nodes[:3])) or "nothing"
            raise EngineError(
                f"no node of the Ray cluster has room for a run, which takes {_told(self._asked)}; "
                f"its largest have {largest}. --cpus-per-run and --gpus-per-run say what a run "
                "takes; --force waits for a larger node"
            )

    def _room(self, node: dict[str, float]) -> int:
        """Count the runs that a node can take."""
        asked = {name: amount for name, amount in self._asked.items() if amount > 0.0}
        return min(int(node.get(name, 0.0) / each + 1e-9) for name, each in asked.items())

    def _hire(self) -> Actor:
        return Actor(self._remote.remote(*self._facts), self._store)

    def _wait(self, seconds: float) -> None:
        import ray

        awaited = [ref for member in self.members for ref in member.awaited]
        if awaited:
            ray.wait(awaited, timeout=seconds)
        else:
            time.sleep(seconds)

    def close(self) -> None:
        """End all workers."""
        for member in self.members:
            member.bury()
        self.members.clear()


@contextmanager
def _connected(address: str | None, workers: int | None, share: Share) -> Iterator[None]:
    """Connect to a cluster, or start a Ray of this machine's own, unless the caller has."""
    # Ray prints pages about a lost node to the standard output, which is for results. (Causes are
    # kept all the same.) It looks at this when it is imported.
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
        # What is started here is ours, and reports to nobody.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options["include_dashboard"] = False
        options["num_cpus"] = None if workers is None else math.ceil(workers * share.cpus)
    before = signal.getsignal(signal.SIGTERM)
    try:
        _knock(place)
        ray.init(place, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as fault:
        raise EngineError(f"no Ray cluster can be reached at {place!r}: {shortly(fault)}") from None
    try:
        yield
    except ray.exceptions.RayError as fault:  # of a worker's end the crew hears: this is its head's
        raise EngineError(f"the Ray cluster at {place!r} is lost: {shortly(fault)}") from None
    finally:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray has put its own there


def _knock(address: str) -> None:
    """Raise ``OSError`` if nobody is there: Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        with socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS):
            pass


def _weights(specs: Iterable[RunSpec], place: Path | None) -> dict[str, bytes]:
    """Return the files of all released rules that ``specs`` learn by, for nodes without them."""
    from rulescope.rules import locate, registry

    named = {getattr(item.learner, "rule", "") for item in specs}
    released = [rule for name, rule in registry.RULES.items() if name in named]
    return {rule.name: locate.ensure(rule, place).read_bytes() for rule in released}


def _nodes() -> list[dict[str, float]]:
    """Return what every living node has, free or not."""
    import ray

    known: Any = ray.nodes  # which has no types
    return [node["Resources"] for node in known() if node["Alive"]]


def _told(resources: dict[str, float]) -> str:
    """Say what a node has, or a run takes."""
    told = [f"{resources.get('CPU', 0.0):g} CPU"]
    told += [f"{resources['GPU']:g} GPU"] if resources.get("GPU") else []
    told += [f"{readable(int(resources['memory']))} memory"] if resources.get("memory") else []
    return ", ".join(told)
