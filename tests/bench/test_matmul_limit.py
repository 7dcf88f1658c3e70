from typing import Any

import pytest
import torch

from benchmarks import disco_comparison
from benchmarks.matmul_limit import (
    BatchExtent,
    ProductRate,
    ProductRecorder,
    multiply_adds,
    update_products,
)
from benchmarks.timed_lifetime import TimedLifetime
from rulescope.envs.world_config import Catch
from rulescope.learners.disco.batch import Batch


def batch_and_products(lifetime: TimedLifetime) -> tuple[Batch, int]:
    """Make one iteration; return its batch and the multiply-adds that its update made."""
    counts = []
    update = lifetime.learner.update
    inner = update.fast_

    def counted(state: Any, batch: Batch) -> Any:
        with ProductRecorder() as recorder:
            result = inner(state, batch)
        counts.append(multiply_adds(recorder.shapes))
        return result

    update.fast_ = counted  # type: ignore[method-assign]
    lifetime.clear_batches()
    lifetime.iterate()
    (batch,) = lifetime.batches
    return batch, counts[0]


@pytest.mark.parametrize(
    ("bundle", "grid", "actions", "slack"),
    [
        ("historical", 8, 3, 0.03),
        ("reference", 8, 3, 0.03),
        ("legacy", 8, 3, 0.03),
        ("historical", 16, 6, 0.08),
    ],
)
def test_an_update_makes_few_products_that_it_does_not_need(
    bundle: str, grid: int, actions: int, slack: float
) -> None:
    spec = disco_comparison.lifetime_spec(
        disco_comparison.FALLBACK, Catch(rows=grid, columns=grid), bundle
    )
    lifetime = TimedLifetime(spec, actions)
    batch, made = batch_and_products(lifetime)
    needed = update_products(lifetime.learner, batch)
    # Made but not needed: the slow network's auxiliary head, the online one for actions not
    # taken, and gradients of rows and of chained actions that carry no loss. Needed but not
    # counted: some tiny products of the rule. The more actions there are, the more go untaken.
    assert needed <= made <= (1.0 + slack) * needed


def batch_of(index: list[list[int]], actions: list[list[int]], terminals: list[list[int]]) -> Batch:
    steps = torch.tensor(actions)
    return Batch(
        rows=torch.zeros(int(torch.tensor(index).max()) + 1, 2, 2),
        index=torch.tensor(index),
        actions=steps,
        rewards=torch.zeros(steps.shape),
        terminals=torch.tensor(terminals, dtype=torch.float32),
        behaviour=torch.zeros(*steps.shape, 3),
        began=torch.zeros(steps.shape[1]),
    )


def test_the_extent_counts_distinct_rows_and_pairs() -> None:
    # Two trajectories of three transitions; row 3 only closes one of them.
    batch = batch_of(
        index=[[0, 0], [1, 1], [0, 2], [3, 1]],
        actions=[[2, 2], [0, 0], [1, 0]],
        terminals=[[0, 0], [1, 0], [0, 1]],
    )
    extent = BatchExtent.of(batch)
    assert extent.rows == 4
    assert extent.learning == 3
    assert extent.pairs == 4  # (0, 2), (1, 0), (0, 1), (2, 0)
    assert extent.chained == 3 + 1 + 1  # up to the highest action of rows 0, 1 and 2
    assert extent.transitions == 6
    assert extent.starts == 3  # the ends of two trajectories, and one terminal before that


def test_fewer_distinct_rows_need_fewer_products() -> None:
    spec = disco_comparison.lifetime_spec(disco_comparison.FALLBACK, Catch(), batch=8)
    lifetime = TimedLifetime(spec)
    lifetime.iterate()
    (batch,) = lifetime.batches
    repeated = Batch(
        rows=batch.rows[:1],
        index=torch.zeros_like(batch.index),
        actions=batch.actions,
        rewards=batch.rewards,
        terminals=batch.terminals,
        behaviour=batch.behaviour,
        began=batch.began,
    )
    assert update_products(lifetime.learner, repeated) < update_products(lifetime.learner, batch)


def test_the_rate_of_products_is_positive() -> None:
    assert ProductRate([(4, 5, 6)])(passes=2) > 0.0


@pytest.mark.parametrize("inference", [False, True])
def test_the_recorder_records_every_product_except_those_with_vectors(inference: bool) -> None:
    with torch.inference_mode(inference), ProductRecorder() as recorder:
        torch.rand(2, 3) @ torch.rand(3, 4)
        torch.addmm(torch.rand(5), torch.rand(6, 7), torch.rand(7, 5))
        torch.rand(6, 5).addmm_(torch.rand(6, 7), torch.rand(7, 5))
        torch.rand(2, 3, 4) @ torch.rand(4, 5)
        torch.rand(3, 3) + torch.rand(3, 3)
        torch.rand(2, 3) @ torch.rand(3)
    assert recorder.shapes == [(2, 3, 4), (6, 7, 5), (6, 7, 5), (6, 4, 5)]
    assert multiply_adds(recorder.shapes) == 24 + 210 + 210 + 120
