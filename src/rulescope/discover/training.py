"""The discovery itself: meta-steps that move a rule along gradients through learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope import runtime
from rulescope.arrays import Arrays
from rulescope.discover import weights
from rulescope.discover.habitat import neighbours
from rulescope.discover.objective import Judgement, judge
from rulescope.discover.population import Population
from rulescope.discover.spec import Discovery
from rulescope.discover.weights import Rule
from rulescope.learners.base import under
from rulescope.learners.disco.losses import kl

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8


class Outcome(NamedTuple):
    """What one meta-step looked like in one population."""

    scores: dict[int, float]
    """For each world by its number, what was earned in the judged experience: 0 is random play,
    1 optimal."""
    judgement: Judgement
    gradient_norm: float
    """Of the agents' own meta-gradients, before each is brought to length one."""
    broken: int
    """Agents that were replaced because they, or their meta-gradients, were no longer finite."""


class Training:
    """A discovery, advanced one meta-step at a time; ``save`` and ``load`` go on to the bit."""

    def __init__(self, spec: Discovery) -> None:
        runtime.single_threaded()
        self.spec = spec
        self.rule = weights.fresh(spec.sizes, spec.seed)
        self._first = {name: torch.zeros_like(array) for name, array in self.rule.items()}
        self._second = {name: torch.zeros_like(array) for name, array in self.rule.items()}
        self.populations = [Population(spec, numbers) for numbers in neighbours(spec.worlds)]
        self.step = 0
        """Meta-steps made, those of the warm start included."""
        self.log: list[dict[str, float]] = []

    @property
    def finished(self) -> bool:
        """Whether the last meta-step has been made."""
        return self.step >= self.spec.warm_start + self.spec.meta_steps

    def advance(self) -> list[Outcome]:
        """Make one meta-step; return what it looked like in each population."""
        warming = self.step < self.spec.warm_start
        results = [self._through(population, warming) for population in self.populations]
        gradients = [gradient for gradient, _ in results if gradient is not None]
        self.step += 1
        if gradients:
            mean = {
                name: torch.stack([one[name] for one in gradients]).mean(0) for name in self.rule
            }
            self._descend(mean, self.spec.warm_rate if warming else self.spec.learning_rate)
        outcomes = [outcome for _, outcome in results]
        if self.step % self.spec.log_every == 0:
            self.log.append(self._row(outcomes))
        return outcomes

    def _through(self, population: Population, warming: bool) -> tuple[Rule | None, Outcome]:
        """Let a population learn; return its mean meta-gradient, and how it went."""
        spec = self.spec
        rule = weights.copies(self.rule, population.agents)
        population.transplant()
        emitted = [population.learn(rule) for _ in range(spec.updates)]
        seen = population.live("judged", spec.steps)
        advantages, population.critics = population.critic.judge(population.critics, seen)
        judgement = judge(population.agent, population.state.params, seen, advantages, emitted)
        loss = judgement.total(spec.objective)
        if warming:
            loss = torch.stack(
                [kl(told.improved.detach(), told.policy).mean((1, 2)) for told in emitted]
            ).mean(0)
        found = torch.autograd.grad(loss.sum(), list(rule.values()), allow_unused=True)
        own = {
            name: torch.zeros_like(array) if gradient is None else gradient
            for (name, array), gradient in zip(rule.items(), found, strict=True)
        }
        population.detach()
        mean, norm, broken = _combined(own, population)
        for agent in np.flatnonzero(broken | (population.ages >= population.spans)):
            population.replace(int(agent))
        outcome = Outcome(
            dict(zip(population.numbers, population.scores(seen), strict=True)),
            Judgement(*(part.detach() for part in judgement)),
            norm,
            int(broken.sum()),
        )
        return mean, outcome

    def _descend(self, gradient: Rule, rate: float) -> None:
        """Make one step of Adam on the rule."""
        count = self.step
        for name, array in self.rule.items():
            first, second = self._first[name], self._second[name]
            first.lerp_(gradient[name], 1.0 - FIRST_DECAY)
            second.mul_(SECOND_DECAY).addcmul_(gradient[name], gradient[name], value=1e-3)
            scale = (second / (1.0 - SECOND_DECAY**count)).sqrt_().add_(EPSILON)
            array.addcdiv_(first, scale, value=-rate / (1 - FIRST_DECAY**count))

    def _row(self, outcomes: list[Outcome]) -> dict[str, float]:
        """Return a row of the log: scores by world, everything else by population."""
        row = {"meta_step": float(self.step)}
        for index, outcome in enumerate(outcomes):
            row |= {f"score_{number}": score for number, score in outcome.scores.items()}
            parts = {name: float(x.mean()) for name, x in outcome.judgement._asdict().items()}
            parts |= {"gradient_norm": outcome.gradient_norm, "broken": float(outcome.broken)}
            row |= {f"{name}_{index}": part for name, part in parts.items()}
        return row

    def save(self) -> dict[str, NDArray[Any]]:
        """Return a complete checkpoint."""
        parts: Mapping[str, Arrays] = {
            "rule": weights.as_arrays(self.rule),
            "first": weights.as_arrays(self._first),
            "second": weights.as_arrays(self._second),
            "loop": {"step": np.array(self.step)},
            "log": self.columns(),
            **{f"population{i}": p.save() for i, p in enumerate(self.populations)},
        }
        return {f"{part}/{name}": a for part, c in parts.items() for name, a in c.items()}

    def load(self, checkpoint: Arrays) -> None:
        """Go on from what :meth:`save` of the same specification returned."""
        self.rule = weights.from_arrays(under("rule", checkpoint))
        self._first = weights.from_arrays(under("first", checkpoint))
        self._second = weights.from_arrays(under("second", checkpoint))
        self.step = int(checkpoint["loop/step"])
        columns = under("log", checkpoint)
        rows = len(next(iter(columns.values()))) if columns else 0
        self.log = [{name: float(c[i]) for name, c in columns.items()} for i in range(rows)]
        for i, population in enumerate(self.populations):
            population.load(under(f"population{i}", checkpoint))

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Return the log so far, one array [rows] a column."""
        names = self.log[0] if self.log else ()
        return {name: np.array([row[name] for row in self.log]) for name in names}


def _combined(own: Rule, population: Population) -> tuple[Rule | None, float, NDArray[np.bool_]]:
    """Return the mean of the agents' gradients brought to length one, their mean length, and who
    is broken: an agent with a gradient or a state that is not finite has no say.
    """
    squares: Tensor = sum(
        (g.flatten(1).square().sum(1) for g in own.values()), start=torch.zeros(())
    )
    norms = squares.sqrt()
    sound = norms.isfinite() & population.sound()
    if not bool(sound.any()):
        return None, float("nan"), ~sound.numpy()
    share = sound / (norms + 1e-12) / sound.sum()
    mean = {
        name: torch.where(_like(sound, g), g * _like(share, g), 0.0).sum(0)
        for name, g in own.items()
    }
    return mean, float(norms[sound].mean()), ~sound.numpy()


def _like(per_agent: Tensor, array: Tensor) -> Tensor:
    """Return ``per_agent`` [N] with as many axes as ``array`` [N, ...]."""
    return per_agent.view(-1, *[1] * (array.ndim - 1))
