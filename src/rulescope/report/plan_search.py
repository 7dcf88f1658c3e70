"""Search for the assays that records without a plan belong to.

A record does not name its assay, but a grid is data, so a store can be searched for its runs. The
search tries the presets of every assay under every rule and agent in the store, then grids of the
lengths that no preset has. Rules of plug-ins and files are known by their learners: nothing is
imported or loaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

import msgspec

from rulescope.assays import ASSAYS, Assay, Budget, Cell, Selection, narrowed
from rulescope.assays.estimates import Label
from rulescope.assays.plan import Plan
from rulescope.assays.selection import with_subject
from rulescope.assays.subject import PLUGIN_NULL, SMALL_NULL_RULE, Subject, make_subject
from rulescope.core.errors import RulescopeError
from rulescope.envs.world_config import DeepSea
from rulescope.learners.disco_config import AGENTS, SPROUT, Disco
from rulescope.learners.learner_base import RunShape
from rulescope.learners.learner_config import Plugin
from rulescope.learners.open_config import Open
from rulescope.rules.rule_weights import CONTENT, FRESH
from rulescope.run_spec import RunSpec
from rulescope.stats import updates_for_depth

PRESET_ORDER = ("paper", "standard", "quick", "smoke")
"""Of presets with equally many runs in the store, the published one shows best what is missing."""

Known = frozenset[RunSpec]
"""All runs of a store, as specifications: to hash thousands of ids takes seconds."""


@dataclass(frozen=True)
class Variant:
    """A rule, perhaps with an agent, under which assays are tried."""

    subject: Subject | None = None
    """The rule under audit; None is that of the published assay."""
    agent: str | None = None
    """None is the usual one."""
    named: bool = True
    """Whether the name of the rule selects its learner: it does not for plug-ins and small rules
    of files."""

    @property
    def selection(self) -> Selection:
        """What is asked for of an assay."""
        return Selection(subject=self.subject, agent=self.agent)

    def arms(self, assay: Assay) -> tuple[str, ...]:
        """Return the arms of an assay that its learner can have."""
        if self.named or self.subject is None:
            return assay.arms
        return _possible_arms(assay.id, self.subject)


PUBLISHED = Variant()


def search_presets(
    specs: Known, known: Known, rules: Sequence[Variant], preset: str | None = None
) -> list[Plan]:
    """Return the plans of presets that any of ``specs`` belongs to; of ``preset`` alone if given.

    ``known`` are all runs of the store.
    """
    return [
        plan
        for assay in ASSAYS.values()
        for variant in rules
        for name in ([preset] if preset else _distinct_presets(assay))
        for plan in search_preset(assay, variant, name, specs, known)
    ]


def search_lengths(specs: Sequence[RunSpec], known: Known, rules: Sequence[Variant]) -> list[Plan]:
    """Return plans, of lengths or scales that no preset has, that ``specs`` belong to."""
    found = [
        plan
        for assay in ASSAYS.values()
        for variant in rules
        for plan in _other_lengths(assay, variant, specs, known)
    ]
    return list(_without_shared(found, known))


def present_runs(plan: Plan) -> list[RunSpec]:
    """Return the runs of a plan that the store has."""
    return [run for key, run in plan.runs.items() if key in plan.present]


def search_preset(
    assay: Assay, variant: Variant, preset: str, specs: Known, known: Known
) -> Iterator[Plan]:
    """Yield the plan of a preset if any of ``specs`` belongs to it.

    Control arms that the preset does not run are included if the store has them.
    """
    usual, arms, selection = assay.budget(preset), variant.arms(assay), variant.selection
    if not variant.named:
        selection = replace(selection, arms=[arm for arm in usual.arms if arm in arms] or arms)
    for budget, cells in _possible_grid(assay, usual, selection):
        repeated = variant != PUBLISHED and budget == usual
        if repeated or not any(map(specs.intersection, _runs(cells))):
            continue
        planned = frozenset(cell.runs for cell in cells)
        wide = [grid for _, grid in _possible_grid(assay, budget, Selection(arms=arms))]
        kept = [
            cell
            for cell in (wide[0] if wide else cells)
            if cell.runs in planned or known.intersection(cell.runs)
        ]
        yield Plan.of_cells(assay, budget, kept, lambda _, run: run in known)


def _distinct_presets(assay: Assay) -> list[str]:
    """Return the presets of ``assay`` that differ in length; of equally long ones, the largest."""
    lengths = {name: assay.budget(name) for name in reversed(PRESET_ORDER)}
    last = {(b.iterations, b.episodes, b.log_every): name for name, b in lengths.items()}
    return [name for name in PRESET_ORDER if name in last.values()]


def _other_lengths(
    assay: Assay, variant: Variant, specs: Sequence[RunSpec], known: Known
) -> Iterator[Plan]:
    """Yield plans with the lengths, labels and seeds of ``specs``."""
    paper = assay.budget("paper")
    unit = "iterations" if paper.episodes is None else "episodes"
    for length in sorted(_lengths(specs, unit)):
        most = max(spec.seed for spec in specs) + 1
        asked = replace(
            variant.selection,
            arms=variant.arms(assay),
            iterations=length if unit == "iterations" else None,
            episodes=length if unit == "episodes" else None,
        )
        scales = sorted({spec.scale for spec in specs})
        # Some assays have scale 1 alone, and some all others.
        tries = [replace(asked, scales=s) for s in (scales, [s for s in scales if s != 1.0], ())]
        usual = replace(paper, seeds=most)
        grids = (found for each in tries for found in _possible_grid(assay, usual, each))
        for budget, grid in islice(grids, 1):
            cells = [cell for cell in grid if known.intersection(cell.runs)]
            seeds = {run.seed for runs in _runs(cells) for run in runs if run in known}
            if any(map(frozenset(specs).intersection, _runs(cells))):
                cells = [
                    cell._replace(runs=tuple(run for run in cell.runs if run.seed in seeds))
                    for cell in cells
                ]
                yield Plan.of_cells(assay, budget, cells, lambda _, run: run in known)


def _without_shared(found: list[Plan], known: Known) -> Iterator[Plan]:
    """Yield the plans that have runs which no larger plan has, without other conditions.

    Runs of a length that no preset has were most likely made for the assay that has most of them.
    A smaller assay keeps the runs in common with it only where it has runs to compare them with.
    """
    seen: set[RunSpec] = set()
    for plan in sorted(found, key=lambda plan: -len(present_runs(plan))):
        own = set(present_runs(plan)) - seen
        cells = [cell for cell in plan.cells if own.intersection(cell.runs)]
        conditions = {tuple(_condition(cell)) for cell in cells}
        if own:
            kept = [cell for cell in plan.cells if tuple(_condition(cell)) in conditions]
            yield Plan.of_cells(plan.assay, plan.budget, kept, lambda _, run: run in known)
        seen |= own


def _condition(cell: Cell) -> list[Label]:
    return [label for axis, label in cell.labels.items() if axis != "arm"]


def _lengths(specs: Iterable[RunSpec], unit: str) -> set[int]:
    """Return the lengths of runs in iterations or, of those in DeepSea, in episodes."""
    usual = RunShape()
    found: set[int] = set()
    for spec in specs:
        if unit == "episodes" and isinstance(spec.environment, DeepSea):
            found |= set(_episodes(spec.environment.depth, spec))
        elif unit == "iterations" and (spec.lanes, spec.steps) == (usual.lanes, usual.steps):
            found.add(spec.iterations)
    return found


def _episodes(depth: int, spec: RunSpec) -> Iterator[int]:
    """Yield the roundest number of episodes that makes runs as long as ``spec``."""
    near = spec.iterations * spec.lanes * spec.steps / depth
    for step in (1000, 100, 10, 1):
        episodes = int(near // step) * step
        if episodes and updates_for_depth(depth, episodes) == spec.iterations:
            yield episodes
            return


def _possible_grid(
    assay: Assay, budget: Budget, selection: Selection
) -> Iterator[tuple[Budget, list[Cell]]]:
    """Yield the narrowed budget and its grid, if the assay has such a grid."""
    try:
        chosen = narrowed(assay, budget, selection)
        cells = assay.grid(chosen)
    except RulescopeError:
        return
    yield chosen, cells


def _runs(cells: Iterable[Cell]) -> Iterator[tuple[RunSpec, ...]]:
    return (cell.runs for cell in cells)


def variants(specs: Iterable[RunSpec]) -> list[Variant]:
    """Return the rules and agents of the learners of ``specs``, the published ones first."""
    learners = Counter(spec.learner for spec in specs)
    ruled = [learner for learner in learners if isinstance(learner, Disco | Open | Plugin)]
    plugins = Counter({one: n for one, n in learners.items() if isinstance(one, Plugin)})
    small = [learner for learner in ruled if isinstance(learner, Disco) and _is_small(learner)]
    named = {_by_name(one) for one in ruled if not isinstance(one, Plugin) and one not in small}
    # Rules with random weights come first, unless they are controls of rules of files.
    filed = any(learner.rule.startswith(CONTENT) for learner in ruled)
    order = sorted(named, key=lambda each: (filed and _is_random(each), *_name_order(each)))
    return [PUBLISHED, *order, *_of_plugins(plugins), *_of_small(small)]


def _by_name(learner: Disco | Open) -> Variant:
    """Return the variant of a learner that the name of its rule, and an agent, select."""
    if isinstance(learner, Open):
        return Variant(Subject(msgspec.structs.replace(Open(), rule=learner.rule)))
    agents = [name for name, each in AGENTS.items() if each == learner.conventions]
    return Variant(make_subject(learner.rule), next(iter(agents), None))


def _is_random(each: Variant) -> bool:
    return each.subject is not None and each.subject.rule.startswith("random:")


def _name_order(each: Variant) -> tuple[bool, str, str]:
    """Return what named variants are sorted by: those with an agent first, then by name."""
    rule = "" if each.subject is None else each.subject.rule
    return each.agent is None, each.agent or "", rule


def _of_plugins(learners: Counter[Plugin]) -> list[Variant]:
    """Return a variant for the options and sources of each plug-in: the most frequent learner.

    (Some assays have arms of other learning rates, and MinAtar takes another torso.)
    """
    usual: dict[tuple[str, str], Counter[Plugin]] = {}
    with_null = set()
    for learner, count in learners.items():
        agent = msgspec.structs.replace(learner.agent, torso="grid")
        plain = msgspec.structs.replace(learner, agent=agent, null_seed=None)
        key = Subject(plain).driver, learner.source
        usual.setdefault(key, Counter())[plain] += count
        with_null |= {key} if learner.null_seed is not None else set()
    return [
        Variant(
            Subject(
                max(sorted(found, key=repr), key=found.__getitem__),
                PLUGIN_NULL if key in with_null else None,
            ),
            named=False,
        )
        for key, found in sorted(usual.items())
    ]


def _is_small(learner: Disco) -> bool:
    """Return whether a learner is the one that small rules of files drive."""
    unnamed = learner.rule.startswith((CONTENT, FRESH))
    return unnamed and learner == msgspec.structs.replace(SPROUT, rule=learner.rule)


def _of_small(learners: Collection[Disco]) -> list[Variant]:
    """Return a variant for each small rule of a file; those with random weights come last."""
    rules = {learner.rule for learner in learners}
    order = sorted(rules, key=lambda rule: (rule.startswith(FRESH), rule))
    twins = [rule for rule in order if rule.startswith(FRESH)]
    null = twins[0] if twins else SMALL_NULL_RULE
    return [
        Variant(Subject(msgspec.structs.replace(SPROUT, rule=rule), null), named=False)
        for rule in order
    ]


@cache
def _possible_arms(assay_id: str, subject: Subject) -> tuple[str, ...]:
    """Return the arms of an assay that ``subject`` can have, found by expanding each."""
    assay = ASSAYS[assay_id]
    budget = with_subject(replace(assay.budget("smoke"), seeds=1), subject)

    def is_possible(*arms: str) -> bool:
        try:
            return bool(assay.grid(replace(budget, arms=arms)))
        except RulescopeError:
            return False

    if is_possible(*assay.arms):
        return assay.arms
    return tuple(arm for arm in assay.arms if is_possible(arm))
