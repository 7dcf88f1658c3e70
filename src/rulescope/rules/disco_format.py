"""Format of Disco rule files: 42 arrays, whose shapes follow from 14 sizes.

Two networks share a file. The *outer* network (keys beginning ``lstm/``) turns a batch of
trajectories into targets; the *lifetime* network (``lstm/~/meta_lstm/~unroll/``) carries a state
from one update to the next. Each has its own encoders of the predictions y and z and of the
per-action features. Weights are ``[inputs, outputs]``; a convolution of width one over the actions
is ``[1, inputs, outputs]``.

Rules smaller than Disco103 have the same 42 keys. Their sizes are declared nowhere: each is the
length of one array (see :data:`SIZE_FROM`), and every other array must then have the shape that
these sizes imply.
"""

from __future__ import annotations

from typing import NamedTuple

from rulescope.core.arrays import Arrays
from rulescope.rules.array_format import Shape, find_fault

LIFETIME = "lstm/~/meta_lstm/~unroll/"
"""Prefix of the keys of the lifetime network."""

STEP_FEATURES = 23
"""Features of each step besides those of the action encoder; fixed by the rule."""
ACTION_CHANNELS = 9
"""Features of each action at each step; fixed by the rule, independent of its size."""


class DiscoSizes(NamedTuple):
    """The free sizes of a Disco rule; the defaults are those of Disco103."""

    predictions: int = 600
    """Width of y and z, the predictions whose meaning the rule defines."""
    trajectory: int = 256
    """Units of the LSTM that runs backwards over a trajectory."""
    lifetime: int = 128
    """Units of the LSTM whose state persists for the whole lifetime."""
    message: int = 1
    """Numbers that the outer network passes to the lifetime network at each step."""
    policy_hidden: int = 16
    y_hidden: int = 16
    z_hidden: int = 16
    action_hidden: int = 16
    action_embedding: int = 2
    lifetime_input: int = 16
    """Width of the batch average that the lifetime LSTM reads."""
    lifetime_y_hidden: int = 16
    lifetime_z_hidden: int = 16
    lifetime_action_hidden: int = 16
    lifetime_action_embedding: int = 2


SIZE_FROM: dict[str, str] = {
    "predictions": "lstm/linear_2/b",
    "trajectory": "lstm/linear/b",
    # Not the lifetime LSTM's bias, which is four gates long, but the matrix that reads its state.
    "lifetime": "lstm/linear/w",
    "message": "lstm/linear_1/b",
    "policy_hidden": "lstm/sequential_1/conv1_d/b",
    "y_hidden": "lstm/mlp/~/linear_0/b",
    "z_hidden": "lstm/mlp_1/~/linear_0/b",
    "action_hidden": "lstm/sequential/conv1_d/b",
    "action_embedding": "lstm/sequential/conv1_d_1/b",
    "lifetime_input": f"{LIFETIME}mlp_2/~/linear_0/b",
    "lifetime_y_hidden": f"{LIFETIME}mlp/~/linear_0/b",
    "lifetime_z_hidden": f"{LIFETIME}mlp_1/~/linear_0/b",
    "lifetime_action_hidden": f"{LIFETIME}sequential/conv1_d/b",
    "lifetime_action_embedding": f"{LIFETIME}sequential/conv1_d_1/b",
}
"""For each size, the array whose first dimension it is."""


DISCO103 = DiscoSizes()
SPROUT = DiscoSizes(
    predictions=16,
    trajectory=64,
    lifetime=32,
    action_embedding=4,
    lifetime_action_embedding=4,
)


def shapes(sizes: DiscoSizes = DISCO103) -> dict[str, Shape]:
    """Return the 42 keys and their shapes for a rule of the given sizes."""
    s = sizes
    outer = {
        **_linear("linear", s.lifetime, s.trajectory),
        **_linear("linear_1", s.trajectory, s.message),
        **_linear("linear_2", s.trajectory, s.predictions),
        **_linear("linear_3", s.trajectory, s.predictions),
        **_linear("linear_4", s.policy_hidden, 1),
        **_lstm(STEP_FEATURES + 2 * s.action_embedding, s.trajectory),
        **_encoder("mlp", s.predictions, s.y_hidden),
        **_encoder("mlp_1", s.predictions, s.z_hidden),
        **_action_encoder(s.action_hidden, s.action_embedding),
        **_convolution("sequential_1/conv1_d", s.trajectory + s.action_embedding, s.policy_hidden),
    }
    # The lifetime network also reads the message and one embedding of the y target.
    features = STEP_FEATURES + 2 * s.lifetime_action_embedding + s.message + 1
    lifetime = {
        **_lstm(s.lifetime_input, s.lifetime),
        **_encoder("mlp", s.predictions, s.lifetime_y_hidden),
        **_encoder("mlp_1", s.predictions, s.lifetime_z_hidden),
        **_linear("mlp_2/~/linear_0", features, s.lifetime_input),
        **_action_encoder(s.lifetime_action_hidden, s.lifetime_action_embedding),
    }
    found = {f"lstm/{key}": shape for key, shape in outer.items()}
    found |= {f"{LIFETIME}{key}": shape for key, shape in lifetime.items()}
    return dict(sorted(found.items()))


def _linear(name: str, inputs: int, outputs: int) -> dict[str, Shape]:
    return {f"{name}/b": (outputs,), f"{name}/w": (inputs, outputs)}


def _lstm(inputs: int, units: int) -> dict[str, Shape]:
    """Return the shapes of an LSTM: one matrix on [input, hidden] for all four gates."""
    return _linear("lstm/linear", inputs + units, 4 * units)


def _encoder(name: str, inputs: int, hidden: int) -> dict[str, Shape]:
    """Return the shapes of two layers that map one prediction to one number."""
    return _linear(f"{name}/~/linear_0", inputs, hidden) | _linear(f"{name}/~/linear_1", hidden, 1)


def _convolution(name: str, inputs: int, outputs: int) -> dict[str, Shape]:
    """Return the shapes of a per-action layer, whose inputs include their mean over actions."""
    return {f"{name}/b": (outputs,), f"{name}/w": (1, 2 * inputs, outputs)}


def _action_encoder(hidden: int, embedding: int) -> dict[str, Shape]:
    first = _convolution("sequential/conv1_d", ACTION_CHANNELS, hidden)
    return first | _convolution("sequential/conv1_d_1", hidden, embedding)


def sizes_of(arrays: Arrays) -> DiscoSizes:
    """Return the sizes of a rule that has all 42 keys (see :data:`SIZE_FROM`)."""
    return DiscoSizes(**{size: arrays[key].shape[0] for size, key in SIZE_FROM.items()})


def fault(arrays: Arrays) -> str | None:
    """Return why ``arrays`` are not a Disco rule, naming the array, or None if they are."""
    return find_fault(arrays, "Disco", DISCO103, shapes, sizes_of)
