"""Conformance test of the intervention contract, to be run on any short lifetime.

    check_intervention(RunSpec(learner=..., interventions=(Pin(carrier="recurrent"),), ...))

The lifetime runs, and every carrier is compared before and after each call of the intervention.
Each clause is one function below. A violation raises ``AssertionError`` with a message that starts
with the name of the clause in brackets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rulescope.core.arrays import bit_equal, unprefix
from rulescope.core.errors import SpecError
from rulescope.envs.environment_conformance import require
from rulescope.interventions import Content, States, flatten_floats
from rulescope.lifetime import Lifetime
from rulescope.run_spec import (
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


class Moment(NamedTuple):
    """The carriers of a learner just before and just after one call of the intervention."""

    before: Content
    after: Content


class _RecordedLifetime(Lifetime):
    """A lifetime that stores the carriers before and after every intervention."""

    def _intervene(self) -> None:
        # Called by Lifetime.__init__ already, before an __init__ of this class could prepare it.
        moments = self.__dict__.setdefault("moments", [])
        before = self.learner.save()
        super()._intervene()
        moments.append(Moment(before, self.learner.save()))


def check_intervention(spec: RunSpec, donors: States | None = None) -> None:
    """Raise ``AssertionError``, naming the clause, if the one intervention of ``spec`` violates it.

    ``donors`` holds the terminal states of its donors by run id. The lifetime runs about six times.
    It should be short, but long enough for the learner to learn and the intervention to act.
    """
    if len(spec.interventions) != 1:
        raise SpecError(
            f"interventions: give one, not {len(spec.interventions)}; one is checked at a time"
        )
    life = _run(spec, donors)
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
    """[carrier] Only the named carrier changes: no other carrier, no random stream."""
    for turn, (before, after) in enumerate(moments):
        for name in before:
            mine = name.startswith(f"{item.carrier}/")
            alike = bit_equal({name: before[name]}, {name: after.get(name, before[name])})
            require(mine or alike, "carrier", f"after iteration {turn}, {name} was changed")


def check_content(item: Intervention, moments: list[Moment]) -> None:
    """[content] The written value has the names, types and shapes of the carrier."""
    for turn, moment in enumerate(moments):
        before, after = (unprefix(item.carrier, content) for content in moment)
        require(set(before) == set(after), "content", f"names changed after iteration {turn}")
        for name, array in before.items():
            kept = array.dtype == after[name].dtype and array.shape[1:] == after[name].shape[1:]
            require(kept, "content", f"{item.carrier}/{name} changed its type or shape")


def check_operation(item: Intervention, moments: list[Moment], donors: States) -> None:
    """[operation] After every iteration the carrier has the value that the operation defines."""
    own = [unprefix(item.carrier, moment.before) for moment in moments]
    left = [unprefix(item.carrier, moment.after) for moment in moments]
    onset = _onset(item, own)
    if onset is not None:
        _check_onset(item, own, left, onset, donors)
    for turn, (found, now) in enumerate(zip(own, left, strict=True)):
        where = f"after iteration {turn}"
        if isinstance(item, Pin):
            zero = not any(array.any() for array in now.values())
            require(turn == 0 or zero, "operation", f"{item.carrier} is not zero {where}")
        elif isinstance(item, Ablate) and turn >= item.at and item.mode == "clamp":
            _check_ablated(item, found, now, donors, where)
        elif onset is not None and turn > onset and _restoring(item):
            held = bit_equal(now, left[onset])
            require(held, "operation", f"{item.carrier} is not restored {where}")
        elif turn != onset:
            require(bit_equal(now, found), "operation", f"{item.carrier} was touched {where}")


def _onset(item: Intervention, own: list[Content]) -> int | None:
    """Return the iteration after which the operation first writes or captures a value."""
    match item:
        case Freeze(at=at) | Reset(at=at) | Permute(at=at) | Ablate(at=at):
            return at
        case Transplant() | RandomState():
            return 0
        case Hold():
            changed = [turn for turn, content in enumerate(own) if not bit_equal(content, own[0])]
            require(
                bool(changed),
                "operation",
                f"{item.carrier} never changed: the lifetime is too short",
            )
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
            require(bit_equal(now, found), "operation", f"{item.carrier} changed when captured")
        case Reset():
            require(bit_equal(now, own[0]), "operation", f"{item.carrier} is not the initial value")
        case Transplant(donor=donor):
            given = unprefix(item.carrier, donors[donor.id])
            require(bit_equal(now, given), "operation", f"{item.carrier} is not the donor's")
        case Permute():
            alike = all(_same_values(found[name], now[name]) for name in found)
            require(alike, "operation", f"{item.carrier} has other values than before")
        case Ablate():
            _check_ablated(item, found, now, donors, f"after iteration {onset}")
        case RandomState():
            finite = all(np.isfinite(a).all() for a in now.values() if a.dtype.kind == "f")
            require(finite, "operation", f"{item.carrier} is not finite")


def _check_ablated(item: Ablate, found: Content, now: Content, donors: States, where: str) -> None:
    """Check that the carrier is the donors' mean along the directions, and unchanged across them.

    Random directions are not known here. But the removed part must lie in the subspace in which
    the donors vary, and none of it may remain.
    """
    counters = {name: array for name, array in found.items() if array.dtype.kind != "f"}
    kept = bit_equal(counters, {name: now[name] for name in counters})
    require(kept, "operation", f"the counters of {item.carrier} were touched {where}")
    terminal = [unprefix(item.carrier, donors[donor.id]) for donor in item.donors]
    states = np.stack([flatten_floats(value) for value in terminal])
    mean = states.mean(axis=0)
    axes = np.linalg.svd(states - mean, full_matrices=False)[2]
    own, left = flatten_floats(found), flatten_floats(now) - mean
    taken = own - flatten_floats(now)
    along, across = (left, taken) if item.which == "complement" else (taken, left)
    tolerance = 1e-5 * float(np.linalg.norm(own) + np.linalg.norm(mean))  # float32 sums
    basis = axes if item.which == "random" else axes[: item.components]
    strayed = float(np.linalg.norm(along - along @ basis.T @ basis))
    require(strayed <= tolerance, "operation", f"{item.carrier} moved across directions {where}")
    drawn = along[np.newaxis] / max(float(np.linalg.norm(along)), tolerance)
    remains = float(np.linalg.norm((drawn if item.which == "random" else basis) @ across))
    require(
        remains <= tolerance,
        "operation",
        f"{item.carrier} still has a part along the directions {where}",
    )


def _same_values(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return np.array_equal(np.sort(one, axis=None), np.sort(other, axis=None))


def check_rule(life: Lifetime) -> None:
    """[rule] The rule's weights are unchanged."""
    rule = life.learner.rule
    unchanged = rule is None or life.learner.rule_digest() == rule.content
    require(unchanged, "rule", "the rule's weights changed")


def check_determinism(spec: RunSpec, donors: States | None, moments: list[Moment]) -> None:
    """[determinism] A second lifetime is bit-identical."""
    again: list[Moment] = _run(spec, donors).__dict__["moments"]
    alike = all(bit_equal(one.after, two.after) for one, two in zip(moments, again, strict=True))
    require(alike, "determinism", "a second lifetime differs")


def check_resume(spec: RunSpec, donors: States | None, life: Lifetime) -> None:
    """[resume] Paused at any of a few iterations and resumed, the lifetime is bit-identical."""
    for stop in {0, 1, spec.iterations // 2, spec.iterations - 1}:
        first = Lifetime(spec, donors=donors)
        first.run(until=stop)
        second = Lifetime(spec, donors=donors)
        second.load(first.save())
        second.run()
        alike = bit_equal(second.learner.save(), life.learner.save())
        require(
            alike,
            "resume",
            f"paused after iteration {stop} and resumed, the end differs",
        )


def check_placebo(spec: RunSpec, donors: States | None, life: Lifetime) -> None:
    """[placebo] A placebo leaves the lifetime bit-identical to one without interventions."""
    if isinstance(spec.interventions[0], Placebo):
        plain = _run(msgspec.structs.replace(spec, interventions=()), donors)
        alike = bit_equal(plain.learner.save(), life.learner.save())
        require(alike, "placebo", "writing back the value just read changed the lifetime")


def _run(spec: RunSpec, donors: States | None) -> Lifetime:
    life = _RecordedLifetime(spec, donors=donors)
    life.run()
    return life
