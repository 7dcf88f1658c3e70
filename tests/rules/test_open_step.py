"""The OPEN step against the released program, and proof that the comparison can fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from learners.open_golden import (
    HERE,
    LEAVES,
    TINY,
    TINY_STEPS,
    Content,
    golden,
    tiny_errors,
    tiny_leaves,
    tiny_optimiser,
)
from rulescope.core import arrays
from rulescope.core.errors import WeightsError
from rulescope.rules.open import open_network, open_step
from rulescope.rules.open.open_network import LARGE, SMALL, length, shapes, size_of, unpacked
from rulescope.rules.open.open_step import Open, clip_, dormancy, proportions
from rulescope.rules.rule_weights import OPEN_KEY, load

SETS = {"small": HERE / "tiny_randS_live.npz", "large": HERE / "tiny_randL_live.npz"}


@pytest.mark.parametrize("path", golden("tiny"), ids=lambda path: path.stem)
def test_every_step_is_the_original_s(path: Path) -> None:
    assert tiny_errors(path).within(*TINY), tiny_errors(path)


@pytest.mark.parametrize("name", SETS)
def test_features_are_the_original_s(name: str) -> None:
    data = arrays.read(SETS[name])
    watched = [leaf for leaf in LEAVES if f"s0/feat/{leaf}" in data]
    assert len(watched) == 3
    seen: list[Tensor] = []

    class Watched(Open):
        def _compute_features(self, *given: object) -> Tensor:
            seen.append(super()._compute_features(*given).clone())  # type: ignore[arg-type]
            return seen[-1]

    def make(content: Content) -> Open:
        plain = tiny_optimiser(content)
        return Watched(content["theta"], plain.leaves, plain.explorers)

    tiny_errors(SETS[name], make)
    ends = np.cumsum([leaf.size for leaf in tiny_leaves(data)])
    for turn in range(TINY_STEPS):
        for leaf in watched:
            place = LEAVES.index(leaf)
            end, size = ends[place], tiny_leaves(data)[place].size
            expected = data[f"s{turn}/feat/{leaf}"].reshape(size, -1).T
            found = seen[turn][:, end - size : end].numpy()
            np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


# --- mistakes that are easy to make -------------------------------------------------------------


def patched(
    name: str, value: object, where: object = open_step
) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(where, name, value)


def double_rest(patch: pytest.MonkeyPatch) -> None:
    born = Open.__init__

    def init(self: Open, *given: object) -> None:
        born(self, *given)  # type: ignore[arg-type]
        self._rest = torch.tensor([1.0 - decay for decay in open_step.DECAYS])[:, None]

    patch.setattr(Open, "__init__", init)


def unbiased(columns: Tensor) -> Tensor:
    variance = (columns * columns).sum(dim=0) / (len(columns) - 1)
    return columns.mul_((variance + open_network.NORM_EPSILON).rsqrt())


def uncentred(weight: Tensor) -> Tensor:
    return weight.contiguous()


def mean_per_network(update: Tensor) -> Tensor:
    actor, critic = torch.split(update, [59, 49])
    return torch.cat([actor - actor.mean(), critic - critic.mean()])


def mean_of_tensor_means(update: Tensor) -> Tensor:
    parts = torch.split(update, [4, 20, 4, 16, 3, 12, 4, 20, 4, 16, 1, 4])
    return update - torch.stack([part.mean() for part in parts]).mean()


def mean_kept(update: Tensor) -> Tensor:
    return update


def gru(bias_late: bool = False, swapped: bool = False) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a patch: the bias is added after the reset gate, or the update gate is turned."""

    def remember(self: open_network.RuleNetwork, features: Tensor, carry: Tensor) -> None:
        m, width = self._matrices, self.size.carry
        heard = torch.addmm(m.from_features_bias, m.from_features, features)
        recalled = m.from_carry @ carry
        gates = torch.sigmoid(heard[: 2 * width] + recalled[: 2 * width])
        reset, update = gates[:width], gates[width:]
        candidate = recalled[2 * width :]
        if bias_late:
            candidate = candidate * reset + m.candidate_bias
        else:
            candidate = (candidate + m.candidate_bias) * reset
        candidate = torch.tanh(candidate + heard[2 * width :])
        if swapped:
            carry.copy_(update * candidate + (1 - update) * carry)
        else:
            carry.copy_((1 - update) * candidate + update * carry)

    return lambda patch: patch.setattr(open_network.RuleNetwork, "_update_carry_", remember)


def early_momenta(patch: pytest.MonkeyPatch) -> None:
    described = Open._compute_features

    def before_update(self: Open, params: Tensor, gradient: Tensor, *rest: object) -> Tensor:
        now = self.momenta.clone()
        self.momenta.sub_(self._rest * gradient).div_(self._decays)
        features = described(self, params, gradient, *rest)  # type: ignore[arg-type]
        self.momenta.copy_(now)
        return features

    patch.setattr(Open, "_compute_features", before_update)


def swapped_rows(*names: str) -> Callable[[pytest.MonkeyPatch], None]:
    def patch_rows(patch: pytest.MonkeyPatch) -> None:
        values = [getattr(open_step, name) for name in names]
        for name, value in zip(names, reversed(values), strict=True):
            patch.setattr(open_step, name, value)

    return patch_rows


MISTAKES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "1 - beta taken in double": double_rest,
    "LayerNorm epsilon 1e-5": patched("NORM_EPSILON", 1e-5, open_network),
    "LayerNorm with unbiased variance": patched("_normalised_", unbiased, open_network),
    "LayerNorm without centring": patched("_centred", uncentred, open_network),
    "normaliser epsilon 1e-8": patched("SCALE_EPSILON", 1e-8),
    "mean removed per network": patched("centred_", mean_per_network),
    "mean of tensor means removed": patched("centred_", mean_of_tensor_means),
    "mean not removed": patched("centred_", mean_kept),
    "log epsilon 1e-8": patched("LOG_EPSILON", 1e-8),
    "reset gate before the bias": gru(bias_late=True),
    "update gate turned": gru(swapped=True),
    "momenta before their update": early_momenta,
    "logs before signs": swapped_rows("SIGNS", "LOGS"),
    "gradient's log before its sign": swapped_rows("GRADIENT_SIGN", "GRADIENT_LOG"),
    "layer and epoch swapped": swapped_rows("DEPTH", "EPOCH"),
    "training and layer swapped": swapped_rows("TRAINING", "DEPTH"),
    "no 1e-11 in dormancy": patched("ACTIVITY_EPSILON", 0.0),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MISTAKES[mistake](monkeypatch)
    noticed = [not tiny_errors(path).within(*TINY) for path in SETS.values()]
    assert any(noticed)


def test_the_rewritten_cell_is_the_same_without_its_mistakes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gru()(monkeypatch)
    assert all(tiny_errors(path).within(*TINY) for path in SETS.values())


def test_noise_on_the_critic_is_noticed() -> None:
    def make(data: Content) -> Open:
        leaves = tiny_leaves(data)
        return Open(data["theta"], leaves, sum(leaf.size for leaf in leaves))

    assert not tiny_errors(SETS["small"], make, noisy=LEAVES).within(*TINY)


def test_dormancy_of_inputs_instead_of_units_is_noticed() -> None:
    def make(data: Content) -> Open:
        leaves = tiny_leaves(data)
        turned = [
            leaf._replace(axis=0) if leaf.shape == (4, 4) else leaf for leaf in leaves
        ]  # (only square ones can be)
        return Open(data["theta"], turned, sum(leaf.size for leaf in leaves[:6]))

    assert not tiny_errors(SETS["small"], make).within(*TINY)


# --- its parts ----------------------------------------------------------------------------------


def test_the_two_sizes_are_distinguished_by_length() -> None:
    assert [length(size) for size in (SMALL, LARGE)] == [1211, 3571]
    assert [size_of(torch.zeros(n)) for n in (1211, 3571)] == [SMALL, LARGE]
    with pytest.raises(WeightsError, match=r"1211 or 3571 numbers, this one has shape \(12,\)"):
        size_of(torch.zeros(12))


@pytest.mark.parametrize(
    ("size", "name", "start"),
    [
        (SMALL, "gru.hz.kernel", 136),
        (SMALL, "gru.iz.kernel", 528),
        (SMALL, "norm.a.scale", 840),
        (SMALL, "dense.c.kernel", 1163),
        (LARGE, "gru.in.kernel", 800),
        (LARGE, "dense.b.bias", 2352),
        (LARGE, "dense.c.bias", 3472),
    ],
)
def test_arrays_lie_where_the_file_has_them(size: object, name: str, start: int) -> None:
    which = SMALL if size == SMALL else LARGE
    whole = torch.arange(length(which))
    assert unpacked(whole)[name].flatten()[0] == start
    assert unpacked(whole)[name].shape == shapes(which)[name]


def test_proportions_count_updates_and_epochs() -> None:
    assert proportions(0, updates=56, epochs=4, minibatches=8) == (0.0, 0.0)
    assert proportions(31, updates=56, epochs=4, minibatches=8) == (0.0, 1.0)
    assert proportions(32 * 55 + 8, updates=56, epochs=4, minibatches=8) == (1.0, 1 / 3)
    assert proportions(5, updates=1, epochs=1, minibatches=8) == (0.0, 0.0)


def test_dormancy_is_one_on_average_and_in_a_dead_layer() -> None:
    assert dormancy(torch.tensor([0.0, 1.0, 3.0])).tolist() == pytest.approx(
        [0, 0.75, 2.25], abs=1e-6
    )
    assert dormancy(torch.zeros(5)).tolist() == pytest.approx([1.0] * 5)
    assert dormancy(torch.tensor([17.0])).tolist() == [1.0]


def test_clipping_is_exact() -> None:
    gradient = torch.tensor([3.0, 4.0])
    assert clip_(gradient, 0.5) == 5.0
    assert gradient.tolist() == pytest.approx([0.3, 0.4], abs=1e-7)
    assert clip_(gradient, 0.6) == pytest.approx(0.5)
    assert gradient.tolist() == pytest.approx([0.3, 0.4], abs=1e-7)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = tiny_errors(SETS["small"])
    monkeypatch.setattr(open_network, "BLOCK", 7)
    assert tiny_errors(SETS["small"]).within(*TINY)
    assert errors.within(*TINY)


def test_a_change_of_the_weights_shows_in_the_digest() -> None:
    rule = load("open-random:11")
    held = open_network.RuleNetwork(rule.arrays[OPEN_KEY], torch.device("cpu"))
    assert held.digest() == rule.content
    held._matrices.first[0, 0] += 1e-3
    assert held.digest() != rule.content


def test_random_rules_are_those_of_the_golden_sets() -> None:
    for name, rule in (("small", "open-random:11"), ("large", "open-random-large:12")):
        weights = load(rule)
        assert (weights.arrays[OPEN_KEY] == arrays.read(SETS[name])["theta"]).all()
        assert weights.sha256 == weights.content
    with pytest.raises(WeightsError, match="a whole number, such as open-random:0"):
        load("open-random")
