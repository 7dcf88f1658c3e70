from pathlib import Path

import pytest
import torch

from benchmarks.disco_torch_peer import MODULE, NAME, DiscoTorchPeer, PeerAgent
from benchmarks.peer_process import PeerMissingError, peer_version
from benchmarks.timed_lifetime import disco_config
from rulescope import envs
from rulescope.envs.environment import Environment
from rulescope.envs.world_config import Boundary, Catch
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco_config import Disco
from rulescope.run_spec import RunSpec

ACTIONS, INPUTS = 3, 64


def catch() -> Environment:
    return envs.make(Catch(), Boundary(), scale=1.0, lanes=2)


def test_the_outputs_have_the_shapes_that_disco_torch_requires() -> None:
    agent = PeerAgent(INPUTS, ACTIONS, Disco())
    wanted = {"logits": (3,), "y": (600,), "z": (3, 600), "aux_pi": (3, 3), "q": (3, 601)}
    sequence = agent(torch.rand(5, 4, INPUTS), torch.zeros(5, 4))
    assert {name: tuple(value.shape) for name, value in sequence.items()} == {
        name: (5, 4, *shape) for name, shape in wanted.items()
    }
    carried = agent.init_lstm_state(4, "cpu")
    step, kept = agent.forward_step(torch.rand(4, INPUTS), carried)
    assert {name: tuple(value.shape) for name, value in step.items()} == {
        name: (4, *shape) for name, shape in wanted.items()
    }
    assert kept == carried
    assert [state.shape for state in carried] == [(4, 1), (4, 1)]


def test_the_agent_computes_the_same_as_ours() -> None:
    """With our parameters in the module both have the same outputs."""
    config = Disco()
    ours = Agent((8, 8), ACTIONS, 600, 601, config.agent, config.conventions)
    params = ours.layout.views(ours.initial(seed=3))
    theirs = PeerAgent(INPUTS, ACTIONS, config)
    assert sum(p.numel() for p in theirs.parameters()) == ours.layout.size

    def gates(array: torch.Tensor) -> torch.Tensor:
        admit, candidate, forget, emit = array.chunk(4, dim=-1)
        return torch.cat([admit, forget, candidate, emit], dim=-1)  # torch's own order

    names = {"torso.0": "torso.0", "torso.2": "torso.1"} | {n: n for n in ("policy", "y", "root")}
    for head, own in (("z", "z"), ("aux_pi", "aux"), ("q", "q")):
        names |= {f"heads.{head}.0": f"{own}.0", f"heads.{head}.2": f"{own}.1"}
    state = {f"{a}.weight": params[f"{b}.w"].T for a, b in names.items()}
    state |= {f"{a}.bias": params[f"{b}.b"] for a, b in names.items()}
    state |= {
        "model.weight_ih": gates(params["model.action.w"]).T,
        "model.weight_hh": gates(params["model.hidden.w"]).T,
        "model.bias_ih": gates(params["model.b0"]),
        "model.bias_hh": gates(params["model.b1"]),
    }
    theirs.load_state_dict(state)
    rows = torch.rand(5, 8, 8)
    found = theirs(rows.view(5, 1, INPUTS), torch.zeros(5, 1))
    wanted = ours.outputs(params, rows)._asdict()
    wanted["aux_pi"] = wanted.pop("aux")
    for name, value in wanted.items():
        torch.testing.assert_close(found[name][:, 0], value, rtol=1e-5, atol=1e-6)


def iterate(small: RunSpec, weights: Path) -> None:
    """Two lanes and a batch of four: the first iteration collects, the second learns."""
    peer = DiscoTorchPeer(catch(), disco_config(small), small.steps, weights)
    before = [parameter.detach().clone() for parameter in peer.agent.parameters()]
    assert not peer.iterate()
    assert all(map(torch.equal, before, peer.agent.parameters()))
    assert peer.iterate()
    after = list(peer.agent.parameters())
    assert not any(map(torch.equal, before, after))
    assert all(bool(parameter.isfinite().all()) for parameter in after)


@pytest.mark.usefixtures("fake_peer")
def test_an_iteration_collects_and_learns(
    small: RunSpec, weights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    iterate(small, weights)
    assert peer_version(NAME, MODULE) == "0.0"
    assert capsys.readouterr().out == ""


def test_an_iteration_of_disco_torch_itself(
    small: RunSpec, weights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("disco_torch")
    iterate(small, weights)
    assert peer_version(NAME, MODULE)
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("fake_peer")
def test_warm_up_counts_updates(small: RunSpec, weights: Path) -> None:
    peer = DiscoTorchPeer(catch(), disco_config(small), small.steps, weights)
    peer.warm_up(updates=3)
    assert peer.trainer.stored == 2 * (1 + 3)


@pytest.mark.usefixtures("no_peer")
def test_a_missing_peer_is_an_error(small: RunSpec, weights: Path) -> None:
    with pytest.raises(PeerMissingError, match=r"pip install rulescope\[bench\]"):
        peer_version(NAME, MODULE)
    with pytest.raises(PeerMissingError):
        DiscoTorchPeer(catch(), disco_config(small), small.steps, weights)
