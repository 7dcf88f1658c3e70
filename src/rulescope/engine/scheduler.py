"""The runs of a campaign, handed to a crew of workers until nothing is left that can be done.

The same whatever the workers are: donors first, failed runs again, every cause kept, and where it
stands told to the caller and to readers of the store.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from graphlib import TopologicalSorter

from rulescope import plugin_sources
from rulescope.core.errors import RecordError
from rulescope.core.signals import Interrupts
from rulescope.engine import failures
from rulescope.engine.campaign import Campaign, Running
from rulescope.engine.heartbeat import Announcement
from rulescope.engine.messages import Ended
from rulescope.engine.pool import Crew, EngineError
from rulescope.records import Store
from rulescope.spec import run_spec
from rulescope.spec.run_spec import RunSpec
from rulescope.spec.world_config import Gymnasium

_log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
ATTEMPTS = 3
"""How often a run may fail in a campaign; it goes on from its checkpoint."""

Report = Callable[[Campaign], None]


def carry_out(
    specs: Iterable[RunSpec],
    store: Store,
    enlist: Callable[[dict[str, RunSpec]], Crew],
    report: Report | None,
    name: str,
) -> Campaign:
    """Bring the record of every spec, and of every donor, into ``store``.

    ``enlist`` returns the crew for the specs, by id, that the store does not have; it is not called
    when there are none. An interrupt pauses everybody, then raises ``KeyboardInterrupt``.
    """
    wanted = run_spec.with_donors(map(run_spec.checked, specs))
    missing = {key: item for key, item in wanted.items() if key not in store}
    for key in wanted.keys() - missing.keys():
        if isinstance(wanted[key].environment, Gymnasium):
            plugin_sources.require_same_world(wanted[key], store.manifest(key))
    campaign = Campaign(sum(item.iterations for item in wanted.values()), runs=len(wanted))
    campaign.finished = len(wanted) - len(missing)
    campaign.done = campaign.total - sum(item.iterations for item in missing.values())
    if missing:
        plugin_sources.require_plugins(missing.values())
        crew = enlist(missing)
        with Interrupts() as interrupts, Announcement(store, campaign, name) as announcement:
            _Work(missing, store, crew, campaign, report, interrupts, announcement).do()
    return campaign


class _Work:
    """The runs of a campaign, from the first that is handed out to the last that has ended."""

    def __init__(
        self,
        missing: dict[str, RunSpec],
        store: Store,
        crew: Crew,
        campaign: Campaign,
        report: Report | None,
        interrupts: Interrupts,
        announcement: Announcement,
    ) -> None:
        self._missing, self._store, self._crew = missing, store, crew
        self._campaign, self._report = campaign, report
        self._interrupts, self._announcement = interrupts, announcement
        self._found = campaign.done
        self._reached: dict[str, int] = {}
        self._order = _donors_first(missing)
        self._place = {key: turn for turn, key in enumerate(missing)}
        self._ready: list[tuple[int, str]] = []

    def do(self) -> None:
        """Work until nothing is left that can be done."""
        try:
            while self._hand_out():
                self._settle(self._crew.listen(POLL_SECONDS))
                self._campaign.stopping = self._interrupts.asked
                self._tell()
                if self._campaign.stopping:
                    raise KeyboardInterrupt
            self._fail_orphans()
        except BaseException as fault:
            asked = self._interrupts.asked
            self._wind_down()
            if asked and isinstance(fault, EngineError):
                raise KeyboardInterrupt from None  # it ended the workers that were just starting
            raise
        finally:
            self._crew.close()

    def _wind_down(self) -> None:
        """Wait until every worker has stopped at a checkpoint; the next Ctrl-C ends that."""
        self._interrupts.asked = self._campaign.stopping = True
        self._crew.pause()
        while self._crew.busy:
            self._settle(self._crew.listen(POLL_SECONDS))
            self._look()

    def _hand_out(self) -> bool:
        """Give idle workers what is ready; tell whether anything is left to wait for."""
        for key in self._order.get_ready():
            self._queue(key)
        self._crew.staff(len(self._crew.busy) + len(self._ready))
        # No more than can be worked on at once: what becomes ready later may have to come first.
        for member in self._crew.idle[: len(self._ready)]:
            _, key = heapq.heappop(self._ready)
            self._crew.give(member, key, run_spec.canonical(self._missing[key]))
        return bool(self._ready or self._crew.busy)

    def _queue(self, key: str) -> None:
        heapq.heappush(self._ready, (self._place[key], key))

    def _settle(self, ended: Iterable[Ended]) -> None:
        for end in ended:
            match end.how:
                case "done":
                    self._reached[end.run] = self._missing[end.run].iterations
                    self._campaign.finished += 1
                    self._order.done(end.run)
                    with _tolerating_faults():
                        failures.clear(self._store, end.run)
                case "paused":  # it has a checkpoint, and nothing went wrong with it
                    self._queue(end.run)
                case "failed":
                    self._failed(end)

    def _failed(self, end: Ended) -> None:
        """Keep the cause; try again unless that is of no use."""
        causes = self._campaign.causes.setdefault(end.run, [])
        causes.append(end.cause)
        with _tolerating_faults():
            failures.add(self._store, end.run, end.cause, end.iteration, end.trace, end.host)
        if end.again and len(causes) < ATTEMPTS:
            self._queue(end.run)
        else:
            tries = f" (the last of {len(causes)} attempts)" if len(causes) > 1 else ""
            self._give_up(end.run, end.cause + tries)

    def _give_up(self, key: str, cause: str) -> None:
        self._campaign.failed[key] = cause
        self._campaign.given_up += self._missing[key].iterations - self._reached.get(key, 0)

    def _fail_orphans(self) -> None:
        """Count the runs as failed that could not begin because a donor of theirs failed."""
        for key, item in self._missing.items():  # in which donors come before those who need them
            failed = [donor.id for donor in item.donors if donor.id in self._campaign.failed]
            if failed:
                self._give_up(key, f"its donor {failed[0][:12]} failed")

    def _tell(self) -> None:
        self._look()
        if self._report is not None:
            self._report(self._campaign)

    def _look(self) -> None:
        """Bring the campaign up to date with what the workers have said."""
        now, campaign = {}, self._campaign
        for member in self._crew.busy:
            key = member.run
            assert key is not None
            self._reached[key] = max(member.iteration, self._reached.get(key, 0))
            now[key] = Running(
                self._missing[key].iterations,
                member.iteration,
                member.pace.rate,
                len(campaign.causes.get(key, ())) + 1,
                member.pid,
                member.host,
            )
        campaign.running = now
        campaign.workers = min(self._crew.size, len(self._missing))
        campaign.done = self._found + sum(self._reached.values())
        self._announcement.update()


@contextmanager
def _tolerating_faults() -> Iterator[None]:
    """Go on where something cannot be noted: other runs may still be lived."""
    try:
        yield
    except RecordError as fault:
        _log.warning("%s", fault)


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
