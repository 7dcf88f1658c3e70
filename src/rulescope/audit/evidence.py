"""Where an audit runs a rule with its history and without, and what the seeds there say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rulescope.assays.change.change import FROZEN_FROM
from rulescope.assays.change.switch_readouts import frozen_at
from rulescope.assays.estimates import Label, Place, label_text, place
from rulescope.assays.frame import Floats
from rulescope.assays.results import Results
from rulescope.audit import history_answer
from rulescope.audit.profile import (
    FROZEN,
    PINNED,
    Comparison,
    Groups,
    ProfileValue,
    with_seeds,
)
from rulescope.stats import estimate, is_bimodal, paired_estimate, seed_blocks, split_groups
from rulescope.stats.contrasts import PAIRED_DRAWS

Found = Mapping[str, Results]
"""Results by assay id."""

CHANGE = "E3"
RAW_UNIT = "raw"
"""Unit of scores in a world without an upper reference: that of its own rewards."""
AT_SCALE = "score/"
"""How the keys of scores at single reward scales begin."""


class Pair(NamedTuple):
    """Two arms that differ in their history alone, at one place of an axis."""

    axis: str
    place: str
    assay: str
    live: Place
    """Readout of the arm with its history; the row there has its values by seed."""
    other: Place
    against: str = PINNED
    gates: tuple[Place, Place] | None = None
    """Scores that show whether either arm is competent, if not those compared."""
    measure: str = ""
    """Key of the line of the profile that has the readout, if one has it."""


def labels(found: Found, assay: str, axis: str) -> tuple[Label, ...]:
    """Return the labels along an axis of an assay."""
    return found[assay].axes.get(axis, ()) if assay in found else ()


def world_of(found: Found) -> str | None:
    """Return the world that the user named for the audit, if any."""
    return next((name for each in found.values() for name in each.worlds), None)


def has_scale(found: Found) -> bool:
    """Return whether scores are shares of the way to an upper reference."""
    return all(known.normalised for each in found.values() for known in each.worlds.values())


def usual_exposure(found: Found) -> str:
    """Return the exposure in which competence is read: with ends, in a world that has any."""
    known = labels(found, "exposure", "condition")
    return "natural" if world_of(found) and "episodic" not in known else "episodic"


def frozen_column(found: Found) -> str:
    """Return the column of the arm whose state is frozen before a change."""
    return f"{FROZEN}{frozen_at(found[CHANGE].iterations, FROZEN_FROM) if CHANGE in found else '?'}"


def pairs(found: Found) -> Iterator[Pair]:
    """Yield every pair that an audit may have, axis by axis."""

    def pinned(axis: str, where: str, assay: str, at: Place, measure: str) -> Pair:
        live, other = at.replaced(arm="rule"), at.replaced(arm="rule-pin")
        return Pair(axis, where, assay, live, other, measure=measure)

    world = world_of(found)
    task, usual = world or "catch", usual_exposure(found)
    yield pinned("competence", "", "exposure", place("score", condition=usual), "score")
    yield pinned("competence", "on 24×24", "F2", place("endpoint"), "long")
    for scale in labels(found, "E1", "scale"):
        at = place("score", task=task, scale=scale)
        live, pin = at.replaced(arm="live"), at.replaced(arm="pin")
        label = label_text(scale)
        yield Pair("reward scale", f"at {label}", "E1", live, pin, measure=f"{AT_SCALE}{label}")
    masked, natural = (place("score", condition=name) for name in ("masked", "natural"))
    yield pinned("streams", "without reported ends", "exposure", masked, "masked")
    if world is None:
        yield pinned("streams", "in Tracking", "exposure", natural, "natural")
    yield pinned("streams", "without resets", "E-A3c", place("score"), "stream")
    for condition in map(str, labels(found, CHANGE, "condition")):
        after, before = (
            [
                place(quantity, condition=condition, task=task, arm=arm)
                for arm in ("rule", "rule-freeze")
            ]
            for quantity in ("auc", "pre")
        )
        yield Pair(
            "change",
            f"after the {condition.replace('-', ' ')}",
            CHANGE,
            after[0],
            after[1],
            frozen_column(found),
            (before[0], before[1]),
            f"auc/{condition}",
        )


def comparisons(found: Found, draws: int = PAIRED_DRAWS) -> tuple[Comparison, ...]:
    """Return every comparison of the rule with its history and without, judged."""
    made = [(pair, seeds) for pair in pairs(found) if (seeds := _seeds(found, pair)) is not None]
    judged = tuple(_judged(pair, seeds, len(made), draws) for pair, seeds in made)
    return judged if has_scale(found) else tuple(map(_undecided, judged))


def _undecided(one: Comparison) -> Comparison:
    """Return a comparison of scores in raw units, of which none counts as competent."""
    return replace(one, unit=RAW_UNIT, result="undecided", reason=history_answer.NO_BEST)


class Seeds(NamedTuple):
    """The values [seeds] behind a pair: what is compared, and what tells of competence."""

    live: Floats
    other: Floats
    live_gate: Floats
    other_gate: Floats


def _seeds(found: Found, pair: Pair) -> Seeds | None:
    """Return the values behind ``pair``; None unless both arms were run with a common seed."""
    if pair.assay not in found:
        return None
    gates = pair.gates or (pair.live, pair.other)
    rows = found[pair.assay].estimates
    values = [at.seeds(rows) for at in (pair.live, pair.other, *gates)]
    known = [each for each in values if each is not None]
    if len(known) < len(values) or not np.isfinite(known[0] - known[1]).any():
        return None
    return Seeds(*known)


def with_groups(figure: ProfileValue, seeds: Floats) -> ProfileValue:
    """Return ``figure`` of scores ``seeds`` [seeds], with their two groups if they form two."""
    if not is_bimodal(seeds):
        return figure
    lower, upper = split_groups(seeds)
    means = float(lower.mean()), float(upper.mean())
    return replace(figure, groups=Groups(len(lower), len(upper), *means))


def _judged(pair: Pair, seeds: Seeds, family: int, draws: int) -> Comparison:
    difference = with_seeds(
        ProfileValue.of(paired_estimate(seeds.live, seeds.other, family=family, draws=draws)),
        seeds.live - seeds.other,
    )
    blocks = seed_blocks(len(seeds.live), draws)
    # Competence and difference are of the same seeds.
    paired = np.isfinite(seeds.live - seeds.other)
    gates = [np.where(paired, each, np.nan) for each in (seeds.live_gate, seeds.other_gate)]
    live, other = (
        with_seeds(with_groups(ProfileValue.of(estimate(each, blocks)), each), each)
        for each in gates
    )
    result, reason = history_answer.judge(
        history_answer.competent(live), history_answer.competent(other), difference
    )
    return Comparison(
        pair.axis,
        pair.place,
        pair.against,
        live,
        other,
        difference,
        history_answer.MARGIN,
        result,
        reason,
        measure=pair.measure,
        source=pair.assay,
    )
