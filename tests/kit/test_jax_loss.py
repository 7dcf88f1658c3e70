"""A loss in JAX has the value and the gradient that torch computes, in one thread."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from learners.baseline_cases import LITTLE
from rulescope.core.errors import SpecError
from rulescope.kit import JaxLoss, JaxSeen, jax_loss
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.update_rule import Seen, Setup, State, UpdateRule

STEPS, LANES, ACTIONS = 5, 2, 3


def seen_and_state() -> tuple[Seen, State]:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Tensor:
        return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))

    seen = Seen(
        logits=draw(STEPS, LANES, ACTIONS).requires_grad_(),
        values=draw(STEPS + 1, LANES).requires_grad_(),
        actions=torch.from_numpy(rng.integers(ACTIONS, size=(STEPS, LANES))),
        rewards=draw(STEPS, LANES),
        terminals=torch.from_numpy((rng.random((STEPS, LANES)) < 0.3).astype(np.float32)),
        before=draw(STEPS, LANES),
        observations=draw(STEPS + 1, LANES, 4),
        heads={"next": draw(STEPS + 1, LANES, 2).requires_grad_()},
        prepared={"weight": draw(STEPS, LANES)},
    )
    return seen, {"size": torch.tensor(2.0), "count": torch.tensor([3], dtype=torch.int32)}


def in_either(seen: Any, state: Any, weight: Any = 1.0) -> tuple[Any, Any]:
    """Return a loss that reads the same in torch and in JAX, and the new state."""
    advantages, returns = seen.advantages(seen.rewards / state["size"], 0.9, 0.8)
    policy = -(advantages * seen.chosen()).mean()
    value = ((seen.values[:-1] - returns) ** 2).mean()
    loss = policy + weight * value - 0.01 * seen.entropy().mean()
    return loss, {"size": state["size"] + seen.rewards.max(), "count": state["count"] + 1}


class InJax(UpdateRule):
    LOSS = JaxLoss(in_either)

    def start(self) -> State:
        return {"size": torch.ones(()), "count": torch.zeros(1, dtype=torch.int32)}

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        return self.LOSS(seen, state)


@pytest.fixture(autouse=True)
def _jax() -> None:
    pytest.importorskip("jax")


def test_loss_gradient_and_state_are_those_of_torch() -> None:
    results = []
    for function in (in_either, JaxLoss(in_either)):
        seen, state = seen_and_state()
        loss, new = function(seen, state, weight=0.7)
        (2.0 * loss).backward()
        results.append((loss.detach(), seen.logits.grad, seen.values.grad, new))
    for one, other in zip(*(each[:3] for each in results), strict=True):
        assert isinstance(one, Tensor)
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert results[0][3]["count"].tolist() == results[1][3]["count"].tolist() == [4]
    torch.testing.assert_close(results[0][3]["size"], results[1][3]["size"])
    assert {name: each.dtype for name, each in results[1][3].items()} == {
        "size": torch.float32,
        "count": torch.int32,
    }


def test_gradients_flow_to_further_heads() -> None:
    def squares(seen: Any, state: Any) -> tuple[Any, Any]:
        return (seen.heads["next"][:-1] ** 2).mean() + seen.prepared["weight"].sum(), state

    gradients = []
    for function in (squares, JaxLoss(squares)):
        seen, state = seen_and_state()
        function(seen, state)[0].backward()
        gradients.append(seen.heads["next"].grad)
    torch.testing.assert_close(*gradients)


def test_an_update_rule_in_jax_keeps_the_contract() -> None:
    setup = Setup((3, 3), ACTIONS, steps=7, seed=5, learning_rate=0.01, agent=LITTLE)
    check_learner(lambda: InJax(setup), (3, 3), ACTIONS, steps=7)


def test_the_function_is_traced_once() -> None:
    calls: list[int] = []

    def counted(seen: JaxSeen, state: dict[str, Any], weight: Any) -> tuple[Any, dict[str, Any]]:
        calls.append(1)
        return in_either(seen, state, weight)

    loss = JaxLoss(counted)
    seen, state = seen_and_state()
    first, second = (float(loss(seen, state, weight=each)[0].detach()) for each in (0.0, 1.0))
    assert len(calls) == 1
    assert first != second


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda seen, _: seen.values.mean(), r"<lambda> must return \(loss, state\), not "),
        (lambda seen, state: (seen.values, state), r"a scalar loss, not one of shape \[6, 2\]"),
    ],
)
def test_an_invalid_result_is_reported(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(SpecError, match=f"JaxLoss: .*{message}"):
        JaxLoss(function)(*seen_and_state())


def test_a_state_that_jax_would_make_narrower_is_refused() -> None:
    seen, _ = seen_and_state()
    for wide, narrow in ((torch.int64, "int32"), (torch.float64, "float32")):
        with pytest.raises(SpecError, match=f"'n' is {wide}.*start with torch.{narrow}"):
            JaxLoss(in_either)(seen, {"n": torch.zeros(1, dtype=wide)})


def test_without_jax_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(jax_loss, "import_module", missing)
    with pytest.raises(SpecError, match=r"JAX is not installed.*pip install 'rulescope\[jax\]'"):
        JaxLoss(in_either)(*seen_and_state())


SUMS = """
import hashlib, os, sys
cores = {int(each) for each in sys.argv[1].split(",")}
os.sched_setaffinity(0, cores)
import numpy as np, torch
import jax.numpy as jnp
EARLY
from rulescope.kit import JaxLoss
from rulescope.learners.update_rule import Seen
rng = np.random.default_rng(0)
zeros = torch.zeros(1, 1)
product = JaxLoss(lambda seen, state: (jnp.tanh(seen.values @ seen.values).sum(), state))
for size in (301, 500, 1000):
    big = torch.from_numpy(rng.standard_normal((size, size)).astype(np.float32))
    seen = Seen(zeros.view(1, 1, 1), big.requires_grad_(), zeros.long(), *[zeros] * 4, {}, {})
    loss, _ = product(seen, {})
    loss.backward()
    print(loss.item().hex(), hashlib.sha256(seen.values.grad.numpy().tobytes()).hexdigest())
"""


def sums(cores: set[int], early: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: each for name, each in os.environ.items() if "NPROC" not in name}
    return subprocess.run(
        [sys.executable, "-c", SUMS.replace("EARLY", early), ",".join(map(str, cores))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_result_does_not_depend_on_the_number_of_cores() -> None:
    cores = sorted(os.sched_getaffinity(0))
    few, many = sums({cores[0]}), sums(set(cores))
    assert few.returncode == 0, few.stderr
    assert few.stdout == many.stdout != ""


def test_jax_that_started_with_more_threads_is_refused() -> None:
    early = 'os.environ["PJRT_NPROC"] = "3"; jnp.zeros(1)'
    done = sums(set(os.sched_getaffinity(0)), early)
    assert "JAX started in this process with 3 threads" in done.stderr
    assert "set PJRT_NPROC=1" in done.stderr


def test_the_kit_is_imported_without_jax() -> None:
    program = "import sys, rulescope.kit; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert import_module("rulescope.kit").JaxLoss is JaxLoss
