"""Random numbers come from the named streams, and torch's own generator does not notice."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from rulescope.core import seeds
from rulescope.kit import sample_actions, torch_random


def weight(seed: int) -> torch.Tensor:
    with torch_random(seeds.stream(seed, "network")):
        return nn.Linear(4, 3).weight.detach()


def test_a_module_depends_on_the_stream_alone() -> None:
    torch.manual_seed(1)
    one = weight(5)
    state = torch.get_rng_state()
    assert torch.equal(one, weight(5))
    assert not torch.equal(one, weight(6))
    assert torch.equal(state, torch.get_rng_state())


def test_a_stream_gives_other_numbers_each_time() -> None:
    stream = seeds.stream(0, "dropout")
    draws = []
    for _ in range(2):
        with torch_random(stream):
            draws.append(torch.rand(4))
    assert not torch.equal(*draws)
    again = seeds.stream(0, "dropout")
    with torch_random(again):
        assert torch.equal(torch.rand(4), draws[0])


def test_actions_are_drawn_from_the_softmax() -> None:
    logits = np.log(np.array([0.1, 0.2, 0.7], np.float32))
    rows = np.broadcast_to(logits, (20_000, 3))
    actions = sample_actions(seeds.stream(0, "action"), rows)
    assert actions.dtype == np.int64
    np.testing.assert_allclose(np.bincount(actions) / len(rows), [0.1, 0.2, 0.7], atol=0.015)
    same = sample_actions(seeds.stream(0, "action"), torch.tensor(np.array(rows)))
    np.testing.assert_array_equal(actions, same)
