"""Learners and parity keep their tensors on one device: shown on a fake GPU."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch

from fake_gpu import fake_gpu
from learners.small import small_spec
from rulescope.learners.learner_config import VARIANTS
from rulescope.lifetime import Lifetime
from rulescope.numerics.golden import Golden
from rulescope.numerics.output_parity import (
    compare_forward,
    compare_value_estimator,
    compare_value_interface,
)

SPEC = small_spec(iterations=30, log_every=5)
GOLDEN = Path(__file__).parent / "golden" / "disco"


def test_the_fake_refuses_tensors_of_two_devices_and_numpy() -> None:
    with fake_gpu() as device:
        there, here = torch.zeros(3, device=device), torch.ones(3)
        with pytest.raises(RuntimeError, match="another on cpu"):
            there + here
        with pytest.raises((RuntimeError, TypeError)):
            there.numpy()
        assert (there + here.to(device)).cpu().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["disco", "a2c", "a2c-popart", "ppo", "dqn", "open-adam"])
def test_a_lifetime_on_the_fake_gpu_is_that_on_the_processor(name: str) -> None:
    learner = SPEC.learner if name == "disco" else VARIANTS[name]
    spec = msgspec.structs.replace(SPEC, learner=learner)
    usual = Lifetime(spec)
    usual.run()
    with fake_gpu() as device:
        lifetime = Lifetime(spec, device=device)
        lifetime.run()
        record = lifetime.record()
    assert record.manifest.runtime["device"] == device
    assert record.manifest.science_hash == usual.record().manifest.science_hash


@pytest.mark.parametrize(
    "kind", [compare_forward, compare_value_estimator, compare_value_interface]
)
def test_parity_on_the_fake_gpu_is_that_on_the_processor(kind: object) -> None:
    assert callable(kind)
    usual = list(kind(Golden(GOLDEN)))
    with fake_gpu() as device:
        assert list(kind(Golden(GOLDEN, device))) == usual
