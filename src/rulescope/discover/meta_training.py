"""The discovery itself: meta-steps that move a rule along gradients through learning."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import runtime
from rulescope.core.arrays import Arrays, prefix_names, unprefix
from rulescope.discover import rule_weights
from rulescope.discover.discovery_spec import Discovery
from rulescope.discover.objective import Judgement, judge
from rulescope.discover.population import Emitted, Population
from rulescope.discover.rule_weights import Rule
from rulescope.learners.direction_clipped_adam import EPSILON, FIRST_DECAY, SECOND_DECAY
from rulescope.learners.disco.losses import kl


class Outcome(NamedTuple):
    """What one meta-step looked like."""

    scores: list[float]
    """For each world, what was earned in the judged experience: 0 is random play, 1 optimal."""
    judgement: Judgement
    gradient_norm: float
    """Mean over the agents' own meta-gradients, before the longer ones are cut."""
    broken: int
    """Agents that were replaced because they, or their meta-gradients, were no longer finite."""


class Training:
    """A discovery, advanced one meta-step at a time; ``save`` and ``load`` go on to the bit."""

    def __init__(self, spec: Discovery, start: Rule | None = None) -> None:
        """``start`` is the rule that ``spec`` names, if it names one."""
        runtime.single_threaded()
        self.spec = spec
        self.rule = rule_weights.fresh(spec.sizes, spec.seed) if start is None else start
        self.kept = {name: array.clone() for name, array in self.rule.items()}
        """The running average of the rule: what the discovery ends in."""
        self._first = {name: torch.zeros_like(array) for name, array in self.rule.items()}
        self._second = {name: torch.zeros_like(array) for name, array in self.rule.items()}
        self.population = Population(spec)
        self.step = 0
        """Meta-steps made, those of the warm start included."""
        self.log: list[dict[str, float]] = []

    @property
    def finished(self) -> bool:
        """Whether the last meta-step has been made."""
        return self.step >= self.spec.warm_start + self.spec.meta_steps

    def advance(self) -> Outcome:
        """Make one meta-step."""
        spec, population = self.spec, self.population
        rule = rule_weights.copies(self.rule, population.agents)
        population.transplant()
        emitted = [population.learn(rule) for _ in range(spec.updates)]
        seen = population.live("judged", spec.steps)
        advantages, population.critics = population.critic.judge(population.critics, seen)
        judgement = judge(population.agent, population.state.params, seen, advantages, emitted)
        warming = self.step < spec.warm_start
        loss = _imitation(emitted) if warming else judgement.total(spec.objective)
        own = _gradients(loss.sum(), rule)
        population.detach()
        mean, norm, broken = _combined(own, population.sound())
        self.step += 1
        if mean is not None:
            self._descend(mean, spec.warm_rate if warming else spec.learning_rate)
        for agent in np.flatnonzero(broken | (population.ages >= population.spans)):
            population.replace(int(agent))
        parts = Judgement(*(part.detach() for part in judgement))
        outcome = Outcome(population.scores(seen), parts, norm, int(broken.sum()))
        if self.step % spec.log_every == 0:
            self.log.append(self._row(outcome))
        return outcome

    def _descend(self, gradient: Rule, rate: float) -> None:
        """Make one step of Adam on the rule, and move its average along."""
        count = self.step
        for name, array in self.rule.items():
            first, second = self._first[name], self._second[name]
            first.lerp_(gradient[name], 1.0 - FIRST_DECAY)
            second.mul_(SECOND_DECAY).addcmul_(
                gradient[name], gradient[name], value=1.0 - SECOND_DECAY
            )
            scale = (second / (1.0 - SECOND_DECAY**count)).sqrt_().add_(EPSILON)
            array.addcdiv_(first, scale, value=-rate / (1 - FIRST_DECAY**count))
            self.kept[name].lerp_(array, 1.0 - self.spec.averaging)

    def _row(self, outcome: Outcome) -> dict[str, float]:
        scores = {f"score_{number}": score for number, score in enumerate(outcome.scores)}
        parts = {name: float(x.mean()) for name, x in outcome.judgement._asdict().items()}
        ends = {"gradient_norm": outcome.gradient_norm, "broken": float(outcome.broken)}
        return {"meta_step": float(self.step)} | scores | parts | ends

    def save(self) -> dict[str, NDArray[Any]]:
        """Return a complete checkpoint."""
        parts: dict[str, Arrays] = {
            "rule": rule_weights.as_arrays(self.rule),
            "kept": rule_weights.as_arrays(self.kept),
            "first": rule_weights.as_arrays(self._first),
            "second": rule_weights.as_arrays(self._second),
            "loop": {"step": np.array(self.step)},
            "log": self.columns(),
            "population": self.population.save(),
        }
        return prefix_names(parts)

    def load(self, checkpoint: Arrays) -> None:
        """Go on from what :meth:`save` of the same specification returned."""
        self.rule = rule_weights.from_arrays(unprefix("rule", checkpoint))
        self.kept = rule_weights.from_arrays(unprefix("kept", checkpoint))
        self._first = rule_weights.from_arrays(unprefix("first", checkpoint))
        self._second = rule_weights.from_arrays(unprefix("second", checkpoint))
        self.step = int(checkpoint["loop/step"])
        columns = unprefix("log", checkpoint)
        rows = len(next(iter(columns.values()))) if columns else 0
        self.log = [{name: float(c[i]) for name, c in columns.items()} for i in range(rows)]
        self.population.load(unprefix("population", checkpoint))

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Return the log so far, one array [rows] a column."""
        names = self.log[0] if self.log else ()
        return {name: np.array([row[name] for row in self.log]) for name in names}


def _imitation(emitted: list[Emitted]) -> Tensor:
    """Return how far [N] the policy targets are from the improved policies of the warm start."""
    apart = [kl(told.improved.detach(), told.policy).mean((1, 2)) for told in emitted]
    return torch.stack(apart).mean(0)


def _gradients(loss: Tensor, rule: Rule) -> Rule:
    """Return the derivative of ``loss`` by every array of ``rule``; zero where there is none."""
    found = torch.autograd.grad(loss, list(rule.values()), materialize_grads=True)
    return dict(zip(rule, found, strict=True))


def _combined(own: Rule, alive: Tensor) -> tuple[Rule | None, float, NDArray[np.bool_]]:
    """Return the mean of the agents' gradients, their mean length, and who is broken.

    Gradients that are longer than the mean are cut to it, so that no agent drowns the others; short
    ones stay short, for they are those of agents that have nothing to tell. An agent [N] that is
    not ``alive``, or whose gradient is not finite, has no say. The mean is in units of that length.
    """
    squares: Tensor = sum(
        (g.flatten(1).square().sum(1) for g in own.values()), start=torch.zeros(())
    )
    norms = squares.sqrt()
    sound = norms.isfinite() & alive
    if not bool(sound.any()):
        return None, float("nan"), ~sound.numpy()
    typical = norms[sound].mean() + 1e-12
    share = sound / norms.clamp_min(typical) / sound.sum()
    mean = {
        name: torch.where(_like(sound, g), g * _like(share, g), 0.0).sum(0)
        for name, g in own.items()
    }
    return mean, float(typical), ~sound.numpy()


def _like(per_agent: Tensor, array: Tensor) -> Tensor:
    """Return ``per_agent`` [N] with as many axes as ``array`` [N, ...]."""
    return per_agent.view(-1, *[1] * (array.ndim - 1))
