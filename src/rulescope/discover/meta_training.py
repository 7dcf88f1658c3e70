"""Meta-training: steps of a rule along gradients through the learning of its agents."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import runtime
from rulescope.core.arrays import Arrays, prefix_names, unprefix
from rulescope.discover import rule_tensors
from rulescope.discover.discovery_spec import Discovery
from rulescope.discover.objective import MetaLossTerms, meta_loss_terms
from rulescope.discover.population import EmittedTargets, Population
from rulescope.discover.rule_tensors import Rule
from rulescope.learners.adam import EPSILON, FIRST_DECAY, SECOND_DECAY
from rulescope.learners.disco.losses import kl


class MetaStep(NamedTuple):
    """Measurements of one meta-step."""

    scores: list[float]
    """Of each world in the evaluation experience: 0 is random play, 1 optimal."""
    loss_terms: MetaLossTerms
    gradient_norm: float
    """Mean over the agents' own meta-gradients, before the longer ones are clipped."""
    broken: int
    """Agents that were replaced because they, or their meta-gradients, were not finite."""


class MetaTraining:
    """A discovery, advanced one meta-step at a time; ``save`` and ``load`` continue to the bit."""

    def __init__(self, spec: Discovery, start: Rule | None = None, device: str = "cpu") -> None:
        """``start`` is the rule that ``spec.start`` names, if it names one, on ``device``."""
        runtime.single_threaded(device)
        self.spec, self.device = spec, device
        self.rule = start or rule_tensors.draw_initial(spec.sizes, spec.seed, device)
        self.average = {name: array.clone() for name, array in self.rule.items()}
        """The running average of the rule: the result of the discovery."""
        self._first = {name: torch.zeros_like(array) for name, array in self.rule.items()}
        self._second = {name: torch.zeros_like(array) for name, array in self.rule.items()}
        self.population = Population(spec, device)
        self.step = 0
        """Meta-steps made, those of the warm start included."""
        self.log: list[dict[str, float]] = []

    @property
    def finished(self) -> bool:
        """Whether the last meta-step has been made."""
        return self.step >= self.spec.warm_start + self.spec.meta_steps

    def advance(self) -> MetaStep:
        """Make one meta-step."""
        spec, population = self.spec, self.population
        rule = rule_tensors.copy_per_agent(self.rule, population.agents)
        population.transplant()
        emitted = [population.update(rule) for _ in range(spec.updates)]
        fresh = population.collect("evaluation", spec.steps)
        advantages, population.critics = population.critic.advantages(population.critics, fresh)
        terms = meta_loss_terms(
            population.agent, population.state.params, fresh, advantages, emitted
        )
        warming = self.step < spec.warm_start
        loss = _imitation_loss(emitted) if warming else terms.total(spec.objective)
        gradients = _gradients(loss.sum(), rule)
        population.detach()
        mean, norm, broken = _combine(gradients, population.are_finite())
        self.step += 1
        if mean is not None:
            self._descend(mean, spec.warm_rate if warming else spec.learning_rate)
        for agent in np.flatnonzero(broken | (population.ages >= population.lifetimes)):
            population.replace_agent(int(agent))
        detached = MetaLossTerms(*(term.detach() for term in terms))
        made = MetaStep(population.scores(fresh), detached, norm, int(broken.sum()))
        if self.step % spec.log_every == 0:
            self.log.append(self._log_row(made))
        return made

    def rule_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return the result: the running average of the rule."""
        return rule_tensors.to_arrays(self.average)

    def facts(self) -> dict[str, Any]:
        """Return further entries of the manifest: none."""
        return {}

    def _descend(self, gradient: Rule, rate: float) -> None:
        """Make one step of Adam on the rule, and update its running average."""
        count = self.step
        for name, array in self.rule.items():
            first, second = self._first[name], self._second[name]
            first.lerp_(gradient[name], 1.0 - FIRST_DECAY)
            second.mul_(SECOND_DECAY).addcmul_(
                gradient[name], gradient[name], value=1.0 - SECOND_DECAY
            )
            scale = (second / (1.0 - SECOND_DECAY**count)).sqrt_().add_(EPSILON)
            array.addcdiv_(first, scale, value=-rate / (1 - FIRST_DECAY**count))
            self.average[name].lerp_(array, 1.0 - self.spec.averaging)

    def _log_row(self, made: MetaStep) -> dict[str, float]:
        return {
            "meta_step": float(self.step),
            **{f"score_{number}": score for number, score in enumerate(made.scores)},
            **{name: float(x.mean()) for name, x in made.loss_terms._asdict().items()},
            "gradient_norm": made.gradient_norm,
            "broken": float(made.broken),
        }

    def save(self) -> dict[str, NDArray[Any]]:
        """Return a complete checkpoint."""
        parts: dict[str, Arrays] = {
            "rule": rule_tensors.to_arrays(self.rule),
            "average": rule_tensors.to_arrays(self.average),
            "first": rule_tensors.to_arrays(self._first),
            "second": rule_tensors.to_arrays(self._second),
            "loop": {"step": np.array(self.step)},
            "log": self.log_columns(),
            "population": self.population.save(),
        }
        return prefix_names(parts)

    def load(self, checkpoint: Arrays) -> None:
        """Continue from what :meth:`save` of the same specification returned."""
        self.rule, self.average, self._first, self._second = (
            rule_tensors.from_arrays(unprefix(part, checkpoint), self.device)
            for part in ("rule", "average", "first", "second")
        )
        self.step = int(checkpoint["loop/step"])
        columns = unprefix("log", checkpoint)
        rows = len(next(iter(columns.values()))) if columns else 0
        self.log = [{name: float(c[i]) for name, c in columns.items()} for i in range(rows)]
        self.population.load(unprefix("population", checkpoint))

    def log_columns(self) -> dict[str, NDArray[np.float64]]:
        """Return the log so far: an array [rows] for each column."""
        names = self.log[0] if self.log else ()
        return {name: np.array([row[name] for row in self.log]) for name in names}


def _imitation_loss(emitted: list[EmittedTargets]) -> Tensor:
    """Return the KL [N] of the policy targets from the improved policies of the warm start."""
    divergences = [kl(each.improved.detach(), each.policy).mean((1, 2)) for each in emitted]
    return torch.stack(divergences).mean(0)


def _gradients(loss: Tensor, rule: Rule) -> Rule:
    """Return the gradient of ``loss`` in every array of ``rule``; zero where it has no effect."""
    found = torch.autograd.grad(loss, list(rule.values()), materialize_grads=True)
    return dict(zip(rule, found, strict=True))


def _combine(gradients: Rule, finite: Tensor) -> tuple[Rule | None, float, NDArray[np.bool_]]:
    """Return the mean of the agents' gradients, their mean length, and which agents are broken [N].

    Gradients that are longer than the mean are clipped to it, so that no agent dominates; short
    ones are not lengthened, for they belong to agents with little signal. Agents that are not
    ``finite`` [N], or whose gradient is not, are left out. The unit of the mean is that length.
    """
    squares: Tensor = sum(
        (g.flatten(1).square().sum(1) for g in gradients.values()), start=torch.zeros(())
    )
    norms = squares.sqrt()
    sound = norms.isfinite() & finite
    if not bool(sound.any()):
        return None, float("nan"), ~sound.cpu().numpy()
    typical = norms[sound].mean() + 1e-12
    share = sound / norms.clamp_min(typical) / sound.sum()
    mean = {
        name: torch.where(_like(sound, g), g * _like(share, g), 0.0).sum(0)
        for name, g in gradients.items()
    }
    return mean, float(typical), ~sound.cpu().numpy()


def _like(per_agent: Tensor, array: Tensor) -> Tensor:
    """Return ``per_agent`` [N] with as many axes as ``array`` [N, ...]."""
    return per_agent.view(-1, *[1] * (array.ndim - 1))
