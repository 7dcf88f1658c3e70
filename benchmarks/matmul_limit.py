"""The arithmetic limit: the time of an update's matrix products alone on this machine.

It counts the multiply-adds of the matrix products that one update *needs* on a given batch, each of
them once:

* the agent forwards on the R distinct rows, online and slow; but the auxiliary head only where it
  enters the loss, on the V distinct pairs (row, action) that were taken;
* the agent backwards, on those rows and pairs only that carry a loss. Each product has two
  companions there, one for its input and one for its weight; the observation needs no gradient;
* the rule on all transitions, and its encoders of predictions on the distinct rows.

It does not count softmaxes, gathers, the optimiser, acting, and products with single vectors. The
count, divided by the measured rate of float32 products on one thread, is a lower bound for the time
of any implementation with the same arithmetic. The rate is measured on products of the update's own
shapes; a large square product runs some 15 % faster and gives a second, unreachable bound.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rulescope.learners.disco.agent_network import PER_ACTION_HEADS, Agent
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco.features import LIFETIME, OUTER

Shape = tuple[int, int, int]

SQUARE: Shape = (1024, 1024, 1024)
"""A product with a higher rate than most of an update's own."""
PRODUCTS = ("mm", "addmm", "addmm_", "bmm", "baddbmm", "matmul")
"""Operations that multiply matrices. (In inference mode ``matmul`` is not taken apart first.)"""
TINY = 1_000_000
"""Products of fewer multiply-adds (such as the acting policy's) are not measured."""


class BatchExtent(NamedTuple):
    """The sizes of a batch that its products depend on."""

    rows: int
    """R, distinct observations"""
    learning: int
    """Rows that some action was taken on; the others only close a trajectory."""
    pairs: int
    """V, distinct (row, action) taken"""
    chained: int
    """Steps of a chained action model that lead to a taken action, over all rows"""
    transitions: int
    """T x B"""
    starts: int
    """Transitions at which the (backward) trajectory LSTM starts from an empty state"""

    @classmethod
    def of(cls, batch: Batch) -> BatchExtent:
        """Return the sizes of ``batch``."""
        taken, actions = torch.unique(batch.pairs), batch.behaviour.shape[-1]
        row, action = taken // actions, taken % actions
        steps = batch.index.new_zeros(len(batch.rows))
        steps.scatter_reduce_(0, row, action + 1, "amax")
        return cls(
            rows=len(batch.rows),
            learning=int((steps > 0).sum()),
            pairs=len(taken),
            chained=int(steps.sum()),
            transitions=batch.actions.numel(),
            starts=batch.actions.shape[1] + int(batch.terminals[:-1].sum()),
        )


def update_products(learner: DiscoLearner, batch: Batch) -> int:
    """Return the multiply-adds that one update of ``learner`` on ``batch`` needs."""
    agent = learner.update.agent
    extent = BatchExtent.of(batch)
    everywhere, taken = extent.rows * agent.actions, extent.pairs
    slow = _trunk(agent, extent.rows) + _heads(agent, {"z": everywhere, "q": everywhere})
    online = slow + _heads(agent, {"aux": taken})
    # Independent actions start from the same root, so they share the recurrent product.
    independent = agent.conventions.action_model == "independent"
    recurrent = extent.learning if independent else extent.chained
    through = _trunk(agent, extent.learning, recurrent)
    through += _heads(agent, dict.fromkeys(PER_ACTION_HEADS, taken))
    back = 2 * through - extent.learning * _observation(agent)
    return online + slow + back + rule_products(learner, extent)


def _trunk(agent: Agent, rows: int, recurrent: int | None = None) -> int:
    """Return the multiply-adds of all but the per-action heads on ``rows`` observations.

    ``recurrent`` counts the recurrent products of the action model: one a row where the actions
    are independent, else one a row and action.
    """
    shapes = agent.layout.shapes
    if recurrent is None:
        independent = agent.conventions.action_model == "independent"
        recurrent = rows if independent else rows * agent.actions
    layers = sum(math.prod(shapes[f"{name}.w"]) for name in ("torso.1", "policy", "y", "root"))
    return rows * (_observation(agent) + layers) + recurrent * math.prod(shapes["model.hidden.w"])


def _observation(agent: Agent) -> int:
    """Return the multiply-adds of the first layer for one observation."""
    shapes = agent.layout.shapes
    if agent.sizes.torso == "grid":
        return math.prod(shapes["torso.0.w"])
    _, height, width = agent.observation_shape
    return math.prod(shapes["torso.conv.w"]) * (height - 2) * (width - 2)


def _heads(agent: Agent, pairs: dict[str, int]) -> int:
    """Return the multiply-adds of per-action heads, each on the number of pairs given for it."""
    shapes = agent.layout.shapes
    return sum(
        count * (math.prod(shapes[f"{head}.0.w"]) + math.prod(shapes[f"{head}.1.w"]))
        for head, count in pairs.items()
    )


def rule_products(learner: DiscoLearner, extent: BatchExtent) -> int:
    """Return the multiply-adds of the rule on a batch of that ``extent``.

    The one step of the lifetime network is a product with a single vector, hence not counted.
    """
    arrays = learner.rule.arrays
    rows, steps, actions = extent.rows, extent.transitions, learner.update.agent.actions

    def weights(name: str) -> int:
        return sum(
            int(a.size) for key, a in arrays.items() if key.startswith(name) and key[-1] == "w"
        )

    def convolution(name: str) -> int:
        # One half of the inputs is each action's own, the other their mean over actions.
        return weights(name) // 2 * (actions + 1)

    encoders = sum(
        2 * rows * weights(f"{net}/mlp/")  # of the online and of the slow network
        + 2 * rows * actions * weights(f"{net}/mlp_1/")
        + steps * convolution(f"{net}/sequential/")
        for net in (OUTER, LIFETIME)
    )
    height, gates = (int(size) for size in arrays[f"{OUTER}/lstm/linear/w"].shape)
    trajectory = steps * height * gates - extent.starts * (gates // 4) * gates
    heads = sum(weights(f"{OUTER}/{head}/") for head in ("linear_1", "linear_2", "linear_3"))
    # The policy block's input from the trajectory is the same for every action, so its own and
    # its mean part are one product; the few action channels beside it are negligible.
    policy = weights(f"{OUTER}/sequential_1/") // 2 + actions * weights(f"{OUTER}/linear_4/")
    return encoders + trajectory + steps * (heads + policy + weights(f"{LIFETIME}/mlp/"))


class ProductRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, records the shape (height, depth, width) of every product of two matrices."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shapes: list[Shape] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation, and record its shape if it is a product."""
        del types
        name = func.overloadpacket.__name__
        if name in PRODUCTS:
            left, right = args[-2:]
            if min(left.ndim, right.ndim) > 1:
                depth = int(left.shape[-1])
                self.shapes.append((left.numel() // max(depth, 1), depth, int(right.shape[-1])))
        return func(*args, **(kwargs or {}))


def multiply_adds(shapes: Iterable[Shape]) -> int:
    """Return the multiply-adds of products of these ``shapes``."""
    return sum(math.prod(shape) for shape in shapes)


class ProductRate:
    """The rate at which this thread multiplies float32 matrices of given shapes."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._total = multiply_adds(shapes)
        self._pairs = [(torch.rand(m, k), torch.rand(k, n)) for m, k, n in shapes]

    def __call__(self, passes: int = 2) -> float:
        """Return multiply-adds per second, all shapes in turn, at the median of ``passes``."""
        times = []
        for _ in range(passes):
            start = time.perf_counter()
            for left, right in self._pairs:
                torch.mm(left, right)
            times.append(time.perf_counter() - start)
        return self._total / statistics.median(times)
