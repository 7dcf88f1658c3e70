"""Random numbers of a learner from its named streams (:mod:`rulescope.core.seeds`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor


@contextmanager
def torch_random(stream: Generator) -> Iterator[None]:
    """Let torch draw its random numbers from ``stream`` inside a ``with`` block.

    Torch's global generators get a seed from the stream, and afterwards the state that they had:

        with torch_random(seeds.stream(setup.seed, "network")):
            network = nn.Linear(4, 2)
    """
    with unchanged_torch_random():
        torch.manual_seed(int(stream.integers(2**63)))
        yield


@contextmanager
def unchanged_torch_random() -> Iterator[None]:
    """Give torch's global generators the state back that they had before a ``with`` block."""
    # Devices that have not been used have no generator yet; to ask for it would occupy the GPU.
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    used = range(torch.cuda.device_count()) if in_use else ()
    with torch.random.fork_rng(devices=list(used)):
        yield


def sample_actions(stream: Generator, logits: Tensor | NDArray[np.floating]) -> NDArray[np.int64]:
    """Return an action for each row of ``logits`` [N, A]: int64 [N], drawn from the softmax."""
    plain = logits.detach().cpu().numpy() if isinstance(logits, Tensor) else logits
    noise = stream.gumbel(size=plain.shape)
    chosen: NDArray[np.int64] = (plain + noise).argmax(axis=1)
    return chosen
