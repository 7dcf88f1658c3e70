"""The intervention contract as a test that anyone can run on a lifetime of their own.

    check_intervention(RunSpec(learner=..., interventions=(Pin(carrier="recurrent"),), ...))

A short lifetime is lived and every carrier is looked at before and after each moment at which the
intervention may act. Each clause is one function below. A violation raises ``AssertionError`` with
a message that starts with the name of the clause in brackets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rulescope.core.errors import SpecError
from rulescope.interventions import States, flat, same
from rulescope.learners.learner import under
from rulescope.lifetime import Lifetime
from rulescope.spec.run_spec import (
    Ablate,
    Freeze,
    Hold,
    Intervention,
    Permute,
    Pin,
    Placebo,
    RandomState,
    Reset,
    RunSpec,
    Transplant,
)

Content = dict[str, NDArray[Any]]


class Moment(NamedTuple):
    """A learner just before and just after the intervention had its turn."""

    before: Content
    after: Content


class _Watched(Lifetime):
    """A lifetime that keeps what every intervention found and left."""

    def _intervene(self) -> None:
        # The first moment comes before __init__ of this class could have prepared anything.
        moments = self.__dict__.setdefault("moments", [])
        before = self.learner.save()
        super()._intervene()
        moments.append(Moment(before, self.learner.save()))


def check_intervention(spec: RunSpec, donors: States | None = None) -> None:
    """Raise ``AssertionError``, naming the clause, if the one intervention of ``spec`` misbehaves.

    ``donors`` holds the terminal states of its donors by run id. The lifetime is lived some six
    times and should be short, but long enough for the learner to learn and the intervention to act.
    """
    if len(spec.interventions) != 1:
        raise SpecError(f"interventions: one is checked at a time, not {len(spec.interventions)}")
    life = _live(spec, donors)
    moments: list[Moment] = life.__dict__["moments"]
    item = spec.interventions[0]
    check_only_its_carrier(item, moments)
    check_content(item, moments)
    check_operation(item, moments, donors or {})
    check_rule(life)
    check_determinism(spec, donors, moments)
    check_resume(spec, donors, life)
    check_placebo(spec, donors, life)


def check_only_its_carrier(item: Intervention, moments: list[Moment]) -> None:
    """[carrier] Nothing but the named carrier moves: no other carrier, no random stream."""
    for turn, (before, after) in enumerate(moments):
        for name in before:
            mine = name.startswith(f"{item.carrier}/")
            alike = same({name: before[name]}, {name: after.get(name, before[name])})
            _require(mine or alike, "carrier", f"after iteration {turn}, {name} was changed")


def check_content(item: Intervention, moments: list[Moment]) -> None:
    """[content] What is written has the names, types and shapes that the carrier had."""
    for turn, moment in enumerate(moments):
        before, after = (under(item.carrier, content) for content in moment)
        _require(set(before) == set(after), "content", f"names changed after iteration {turn}")
        for name, array in before.items():
            kept = array.dtype == after[name].dtype and array.shape[1:] == after[name].shape[1:]
            _require(kept, "content", f"{item.carrier}/{name} changed its type or shape")


def check_operation(item: Intervention, moments: list[Moment], donors: States) -> None:
    """[operation] The carrier holds, after every iteration, what the operation promises."""
    own = [under(item.carrier, moment.before) for moment in moments]
    left = [under(item.carrier, moment.after) for moment in moments]
    onset = _onset(item, own)
    if onset is not None:
        _check_onset(item, own, left, onset, donors)
    for turn, (found, now) in enumerate(zip(own, left, strict=True)):
        where = f"after iteration {turn}"
        if isinstance(item, Pin):
            zero = not any(array.any() for array in now.values())
            _require(turn == 0 or zero, "operation", f"{item.carrier} is not zero {where}")
        elif isinstance(item, Ablate) and turn >= item.at and item.mode == "clamp":
            _check_ablated(item, found, now, donors, where)
        elif onset is not None and turn > onset and _restoring(item):
            held = same(now, left[onset])
            _require(held, "operation", f"{item.carrier} is not what was held {where}")
        elif turn != onset:
            _require(same(now, found), "operation", f"{item.carrier} was touched {where}")


def _onset(item: Intervention, own: list[Content]) -> int | None:
    """Return the moment at which the operation first has something to write or to keep."""
    match item:
        case Freeze(at=at) | Reset(at=at) | Permute(at=at) | Ablate(at=at):
            return at
        case Transplant() | RandomState():
            return 0
        case Hold():
            changed = [turn for turn, content in enumerate(own) if not same(content, own[0])]
            _require(bool(changed), "operation", f"{item.carrier} never changed: too short a life")
            return changed[0]
        case Pin() | Placebo():
            return None


def _restoring(item: Intervention) -> bool:
    return isinstance(item, Freeze | Hold) or getattr(item, "mode", "natural") == "clamp"


def _check_onset(
    item: Intervention, own: list[Content], left: list[Content], onset: int, donors: States
) -> None:
    now, found = left[onset], own[onset]
    match item:
        case Freeze() | Hold():
            _require(same(now, found), "operation", f"{item.carrier} changed when captured")
        case Reset():
            _require(same(now, own[0]), "operation", f"{item.carrier} is not the newborn's")
        case Transplant(donor=donor):
            given = under(item.carrier, donors[donor.id])
            _require(same(now, given), "operation", f"{item.carrier} is not the donor's")
        case Permute():
            alike = all(_same_values(found[name], now[name]) for name in found)
            _require(alike, "operation", f"{item.carrier} has other values than before")
        case Ablate():
            _check_ablated(item, found, now, donors, f"after iteration {onset}")
        case RandomState():
            finite = all(np.isfinite(a).all() for a in now.values() if a.dtype.kind == "f")
            _require(finite, "operation", f"{item.carrier} is not finite")


def _check_ablated(item: Ablate, found: Content, now: Content, donors: States, where: str) -> None:
    """Check that the carrier is the donors' mean along the directions, and its own across them.

    Which random directions were drawn cannot be known here. But what was taken out must lie where
    the donors vary, and none of it may be left.
    """
    counters = {name: array for name, array in found.items() if array.dtype.kind != "f"}
    kept = same(counters, {name: now[name] for name in counters})
    _require(kept, "operation", f"the counters of {item.carrier} were touched {where}")
    states = np.stack([flat(under(item.carrier, donors[donor.id])) for donor in item.donors])
    mean = states.mean(axis=0)
    axes = np.linalg.svd(states - mean, full_matrices=False)[2]
    own, left = flat(found), flat(now) - mean
    taken = own - flat(now)
    along, across = (left, taken) if item.which == "complement" else (taken, left)
    little = 1e-5 * float(np.linalg.norm(own) + np.linalg.norm(mean))  # of float32, after sums
    basis = axes if item.which == "random" else axes[: item.components]
    strayed = float(np.linalg.norm(along - along @ basis.T @ basis))
    _require(strayed <= little, "operation", f"{item.carrier} moved across directions {where}")
    drawn = along[np.newaxis] / max(float(np.linalg.norm(along)), little)
    remains = float(np.linalg.norm((drawn if item.which == "random" else basis) @ across))
    _require(remains <= little, "operation", f"{item.carrier} still says something {where}")


def _same_values(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return np.array_equal(np.sort(one, axis=None), np.sort(other, axis=None))


def check_rule(life: Lifetime) -> None:
    """[rule] The rule's weights are what they were."""
    rule = life.learner.rule
    unchanged = rule is None or life.learner.rule_digest() == rule.content
    _require(unchanged, "rule", "the rule's weights changed")


def check_determinism(spec: RunSpec, donors: States | None, moments: list[Moment]) -> None:
    """[determinism] A second lifetime is the same to the bit."""
    again: list[Moment] = _live(spec, donors).__dict__["moments"]
    alike = all(same(one.after, two.after) for one, two in zip(moments, again, strict=True))
    _require(alike, "determinism", "a second lifetime differs")


def check_resume(spec: RunSpec, donors: States | None, life: Lifetime) -> None:
    """[resume] Stopped at any of a few moments and continued, the lifetime is the same."""
    for stop in {0, 1, spec.iterations // 2, spec.iterations - 1}:
        first = Lifetime(spec, donors=donors)
        first.run(until=stop)
        second = Lifetime(spec, donors=donors)
        second.load(first.save())
        second.run()
        alike = same(second.learner.save(), life.learner.save())
        _require(alike, "resume", f"stopped after iteration {stop}, the lifetime ends otherwise")


def check_placebo(spec: RunSpec, donors: States | None, life: Lifetime) -> None:
    """[placebo] The placebo, and nothing else, leaves the lifetime as it is when live."""
    if isinstance(spec.interventions[0], Placebo):
        live = _live(msgspec.structs.replace(spec, interventions=()), donors)
        alike = same(live.learner.save(), life.learner.save())
        _require(alike, "placebo", "writing back what was read changed the lifetime")


def _live(spec: RunSpec, donors: States | None) -> Lifetime:
    life = _Watched(spec, donors=donors)
    life.run()
    return life


def _require(condition: bool, clause: str, problem: str) -> None:
    if not condition:
        raise AssertionError(f"[{clause}] {problem}")
