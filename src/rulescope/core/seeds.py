"""Named random streams: all randomness of a lifetime is derived from one seed by name.

Because a stream depends only on ``(seed, name)``, adding a new consumer never shifts another one,
and two arms of an experiment share every stream they both use. The distributions of initial
parameters are here too: each array is drawn from the stream of its name.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

_WORD = 0xFFFF_FFFF_FFFF_FFFF


def stream(seed: int, *name: str | int) -> Generator:
    """Return the generator called ``name`` of the lifetime with this ``seed``.

    >>> float(stream(0, "env", 1).random()) == float(stream(0, "env", 1).random())
    True
    """
    digest = hashlib.sha256("/".join(str(part) for part in name).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return Generator(PCG64(SeedSequence([seed, *words])))


def pack(generator: Generator) -> NDArray[np.uint64]:
    """Return the complete state of a PCG64 ``generator`` as six uint64 words."""
    state = generator.bit_generator.state
    pair = state["state"]
    return np.array(
        [
            pair["state"] & _WORD,
            pair["state"] >> 64,
            pair["inc"] & _WORD,
            pair["inc"] >> 64,
            state["has_uint32"],
            state["uinteger"],
        ],
        dtype=np.uint64,
    )


def unpack(words: NDArray[np.uint64]) -> Generator:
    """Return a generator in exactly the packed state."""
    low, high, inc_low, inc_high, has_uint32, uinteger = (int(word) for word in words)
    bits = PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": low | high << 64, "inc": inc_low | inc_high << 64},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return Generator(bits)


def truncated_normal(rng: Generator, shape: tuple[int, ...], std: float) -> NDArray[np.float64]:
    """Return ``std`` times a standard normal truncated to [-2, 2] (variance is not corrected)."""
    draw = rng.standard_normal(shape)
    while (outside := np.abs(draw) > 2.0).any():
        draw[outside] = rng.standard_normal(int(outside.sum()))
    return draw * std


def normal(rng: Generator, shape: tuple[int, ...], std: float) -> NDArray[np.float64]:
    """Return normal draws with this standard deviation."""
    return rng.standard_normal(shape) * std


def orthogonal(rng: Generator, shape: tuple[int, int], gain: float) -> NDArray[np.float64]:
    """Return random orthonormal rows or columns (whichever are fewer), times ``gain``."""
    tall = rng.standard_normal((max(shape), min(shape)))
    basis, triangle = np.linalg.qr(tall)
    basis *= np.sign(np.diag(triangle))  # without which some directions would be more likely
    return gain * (basis if shape[0] >= shape[1] else basis.T)


def uniform(rng: Generator, shape: tuple[int, ...], fan_in: int) -> NDArray[np.float64]:
    """Return draws uniform on +-1/sqrt(fan_in), PyTorch's default for weights and biases."""
    bound = 1.0 / math.sqrt(fan_in)
    return rng.uniform(-bound, bound, shape)
