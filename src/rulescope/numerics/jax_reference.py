"""The original JAX program, run beside ours on fresh random inputs.

Golden arrays show agreement on stored inputs; this shows it on new ones. The original is called
through its public interface: ``learner_step`` for whole updates, ``unroll_meta_net`` for the rule
alone. NumPy draws every input, and the original's own initial values are overwritten.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import arrays, seeds
from rulescope.core.arrays import Arrays, unprefix
from rulescope.core.errors import RulescopeError
from rulescope.numerics.golden import (
    RANDOM_RULE,
    RELEASED_RULE,
    Golden,
    load_rule_weights,
    to_original_names,
)
from rulescope.numerics.output_parity import ForwardCase
from rulescope.numerics.tolerances import PRECISIONS, Comparison, compare, widen_for
from rulescope.numerics.update_parity import SMALL_AGENT, compare_inner_steps, small_update
from rulescope.rules import released_rules, weight_files
from rulescope.rules.rule_weights import load

MODULES = ("jax", "chex", "dm_env.specs", "disco_rl.types", "disco_rl.agent")
INSTALL = "pip install git+https://github.com/google-deepmind/disco_rl jax"
WRITTEN_FOR = "disco_rl at commit 9059a29 with jax 0.10.2, dm-haiku 0.0.17, rlax 0.1.9"
RULE_OUTPUTS = ("pi", "y", "z", "meta_input_emb")
VALUE_OUTPUTS = (
    *("q_value", "q_target", "q_td", "normalized_q_td"),
    *("adv", "normalized_adv", "qv_adv", "normalized_qv_adv"),
)
AVERAGE = ("moment1", "moment2", "decay_product")  # in the order of ours
BOARD, ACTIONS, UPDATES = (4, 4, 1), 3, 3
"""Of the small agent: observation shape, number of actions, updates in a comparison."""
LIVE_TOLERANCES = {("forward", "float32"): 2e-4, ("gradients", "float32"): 1e-4}
"""Fresh inputs need wider tolerances than stored ones in these kinds."""

NamedArrays = dict[str, NDArray[Any]]


def compare_with_original(seed: int = 0, device: str = "cpu") -> Iterator[Comparison]:
    """Compare ours, computed on ``device``, with the original on inputs drawn from ``seed``.

    The released rule is included if its weights are available. Raise :class:`RulescopeError` if
    the original cannot be imported, or is not the supported version.
    """
    original = JaxReference()
    released = weight_files.find(released_rules.get(RELEASED_RULE)) is not None
    rules = {"rand": RANDOM_RULE} | ({"real": RELEASED_RULE} if released else {})
    for item in chain(
        _compare_rule(original, rules, seed, device),
        _compare_updates(original, rules, seed, device),
    ):
        tolerance = LIVE_TOLERANCES.get((item.kind, item.precision), item.tolerance)
        live = item._replace(kind=f"live {item.kind}", tolerance=tolerance)
        yield widen_for(live, device)


def _compare_rule(
    original: JaxReference, rules: Mapping[str, str], seed: int, device: str
) -> Iterator[Comparison]:
    """Compare targets, values and carried state, from a zero and from a non-zero state."""
    inputs = draw_rule_inputs(seeds.stream(seed, "live.rule"))
    for (precision, (_, dtype)), start in product(PRECISIONS.items(), ("zero", "nonzero")):
        case = ForwardCase(inputs, start, dtype, device)
        for key, rule in rules.items():
            ours = case.values() | case.rule_outputs(rule)
            theirs = original.targets(inputs, start, load(rule).arrays, precision)
            for name, value in theirs.items():
                yield compare("forward", precision, f"{key}/{start}: {name}", ours[name], value)


def _compare_updates(
    original: JaxReference, rules: Mapping[str, str], seed: int, device: str
) -> Iterator[Comparison]:
    """Write golden arrays of consecutive updates with the original, and compare ours with them."""
    common = draw_update_inputs(seeds.stream(seed, "live.updates"))
    with TemporaryDirectory() as folder:
        made = {"inner_common": common} | {
            f"inner_{key}_{suffix}": original.updates(common, load(rule).arrays, precision)
            for precision, (suffix, _) in PRECISIONS.items()
            for key, rule in rules.items()
        }
        for name, content in made.items():
            Path(folder, f"{name}.npz").write_bytes(arrays.pack(content, compress=False))
        yield from compare_inner_steps(Golden(Path(folder), device))


def draw_rule_inputs(
    rng: Generator, steps: int = 7, lanes: int = 3, actions: int = 5
) -> NamedArrays:
    """Draw all inputs of the rule, by golden name.

    Network outputs are logits [steps + 1, lanes, ...]; rewards and flags are [steps, lanes].
    """
    slots, normal = (steps + 1, lanes), rng.standard_normal
    found: NamedArrays = {}
    for network in ("agent", "target"):
        found[f"{network}/logits"] = normal((*slots, actions))
        found[f"{network}/y"] = normal((*slots, 600))
        found[f"{network}/z"] = normal((*slots, actions, 600))
        found[f"{network}/q"] = normal((*slots, actions, 601))
    return found | {
        "behaviour/logits": normal((*slots, actions)),
        "actions": rng.integers(actions, size=slots, dtype=np.int32),
        "rewards": normal((steps, lanes)),
        "is_terminal": rng.random((steps, lanes)) < 0.25,
        "nonzero/h": np.tanh(normal(128)),
        "nonzero/c": normal(128),
        "nonzero/adv_ema": np.array([0.2, 1.5, 0.7]),
        "nonzero/td_ema": np.array([-0.1, 2.0, 0.6]),
    }


def draw_update_inputs(rng: Generator, slots: int = 9, lanes: int = 4) -> NamedArrays:
    """Draw an agent, another one as its target, and a rollout [slots, lanes, ...] for each update.

    A slot has the reward that arrived in it. Boards repeat, so that the closed form merges rows.
    """
    layout, normal = (
        small_update(load_rule_weights(RANDOM_RULE, torch.float32)).agent.layout,
        rng.normal,
    )
    likes = to_original_names(layout.views(torch.zeros(layout.size)))
    found = {
        f"{network}/{name}": normal(0.0, 0.1 if like.ndim == 1 else len(like) ** -0.5, like.shape)
        for network in ("params0", "target0")
        for name, like in likes.items()
    }
    boards, shape = normal(size=(8, *BOARD)), (slots, lanes)
    for number in range(UPDATES):
        rollout = {
            "observations": boards[rng.integers(len(boards), size=shape)],
            "actions": rng.integers(ACTIONS, size=shape, dtype=np.int32),
            "rewards": normal(size=shape),
            "discounts": np.where(rng.random(shape) < 0.25, 0.0, 1.0),
            "behaviour_logits": normal(size=(*shape, ACTIONS)),
        }
        found |= _prefixed(f"rollout{number}", rollout)
    return found


def nest(flat: Arrays) -> dict[str, NamedArrays]:
    """Group arrays called ``module/part`` by module, as the original does."""
    tree: dict[str, NamedArrays] = {}
    for name, array in flat.items():
        module, _, part = name.rpartition("/")
        tree.setdefault(module, {})[part] = array
    return tree


def flatten(tree: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arrays of a nested tree as ``module/part``: the inverse of :func:`nest`."""
    return {f"{module}/{part}": a for module, parts in tree.items() for part, a in parts.items()}


class JaxReference:
    """The original program with a small agent; inputs and outputs have golden names."""

    def __init__(self) -> None:
        try:
            found: list[Any] = [importlib.import_module(name) for name in MODULES]
        except Exception as fault:  # incompatible packages may raise anything
            raise RulescopeError(
                f"the original program cannot be imported here ({fault!r:.200}); install it "
                f"with `{INSTALL}`, or leave out --live"
            ) from None
        self._jax, self._chex, specs, self._types, library = found
        with self._running("float32"):
            settings = library.get_settings_disco()
            settings.learning_rate = SMALL_AGENT.learning_rate
            network, sizes = settings.net_settings.net_args, SMALL_AGENT.agent
            network.dense = sizes.hidden
            network.model_kwargs = {"head_mlp_hiddens": (sizes.head,), "lstm_size": sizes.model}
            agent = library.Agent(
                single_observation_spec=specs.Array(BOARD, np.float32),
                single_action_spec=specs.BoundedArray((), np.int32, 0, ACTIONS - 1),
                agent_settings=settings,
                batch_axis_name=None,
            )
            self._rule, self._hyper = agent.update_rule, settings.hyper_params.to_dict()
            jit, self._key = self._jax.jit, self._jax.random.PRNGKey(0)
            self._start = jit(agent.initial_learner_state)(self._key)
            self._memory = jit(agent.initial_actor_state)(self._key)
            self._unroll = jit(self._unroll_rule)
            self._learn = jit(agent.learner_step, static_argnums=5)

    @contextmanager
    def _running(self, precision: str) -> Iterator[None]:
        """Configure JAX for ``precision``, restore it afterwards, and explain errors."""
        jax, chex = self._jax, self._chex
        before = jax.config.jax_enable_x64, chex.Array
        try:
            jax.config.update("jax_enable_x64", precision == "float64")
            # With some Pythons a traced value is no instance of chex.Array; the original would
            # then refuse its inputs, or silently omit the gate of the lifetime state.
            chex.Array = jax.Array
            with jax.default_device(jax.devices("cpu")[0]):  # others may have lower precision
                yield
        except Exception as fault:
            raise RulescopeError(
                f"the installed disco_rl is not a supported version ({fault!r:.200}); "
                f"this check was written for {WRITTEN_FOR}"
            ) from fault
        finally:
            jax.config.update("jax_enable_x64", before[0])
            chex.Array = before[1]

    def _cast(self, tree: Any, precision: str) -> Any:
        """Return ``tree`` with its floats in ``precision``."""
        return self._jax.tree.map(lambda x: x.astype(precision) if x.dtype.kind == "f" else x, tree)

    def targets(self, inputs: Arrays, start: str, rule: Arrays, precision: str) -> NamedArrays:
        """Return the rule's outputs for ``inputs`` (see :func:`draw_rule_inputs`)."""
        with self._running(precision):
            # The original evaluates the target network; here its "parameters" are its outputs.
            state = self._start.meta_state | {"target_params": unprefix("target", inputs)}
            if start == "nonzero":
                used, tree = unprefix("nonzero", inputs), self._jax.tree
                form = tree.structure(state["rnn_state"])
                state["rnn_state"] = tree.unflatten(form, [used["h"], used["c"]])
                for name in ("adv", "td"):
                    moments = zip(AVERAGE, used[f"{name}_ema"], strict=True)
                    state[f"{name}_ema_state"] = self._types.EmaState(**dict(moments))
            rollout = _select(inputs, ("actions", "rewards", "is_terminal")) | {
                "observations": np.zeros(inputs["actions"].shape),
                "agent_out": unprefix("agent", inputs),
                "behaviour_agent_out": unprefix("behaviour", inputs),
            }
            given = self._cast((nest(rule), state, rollout), precision)
            output, state = self._jax.device_get(self._unroll(*given))
            named = _select(output, RULE_OUTPUTS) | self._carried(state)
            return named | _prefixed("value_out", _select(output, VALUE_OUTPUTS))

    def _unroll_rule(self, rule: Any, state: Any, rollout: Any) -> Any:
        return self._rule.unroll_meta_net(
            meta_params=rule,
            params=state["target_params"],
            state={},
            meta_state=state,
            rollout=self._types.UpdateRuleInputs(**rollout),
            hyper_params=self._hyper,
            unroll_policy_fn=lambda table, memory, *_: (table, memory),
            rng=None,
            axis_name=None,
        )

    def updates(self, common: Arrays, rule: Arrays, precision: str) -> NamedArrays:
        """Return consecutive updates on ``common`` (see :func:`draw_update_inputs`).

        In float32 only the first one, without its parameters: Adam's first step moves a parameter
        by the whole learning rate even if its gradient is mere rounding.
        """
        exact, found = precision == "float64", NamedArrays()
        with self._running(precision):
            params, target = (nest(unprefix(name, common)) for name in ("params0", "target0"))
            carried = self._start.meta_state | {"target_params": target}
            start = self._start.replace(params=params, meta_state=carried)
            state, weights = self._cast((start, nest(rule)), precision)
            for number in range(UPDATES if exact else 1):
                slots = unprefix(f"rollout{number}", common)
                behaviour = {"logits": slots.pop("behaviour_logits")}
                rollout = self._types.ActorRollout(
                    **slots, **behaviour, agent_outs=behaviour, states=self._memory
                )
                given = self._cast(rollout, precision), state, self._memory, weights
                before = self._jax.device_get(state.opt_state[0].mu)
                state, _, log = self._learn(self._key, *given, False)
                after, log = self._jax.device_get((state, log))
                step = (
                    _select(log, ("total_loss", "global_gradient_norm", "global_update_norm"))
                    | _prefixed("meta_out", _select(log["meta_out"], RULE_OUTPUTS + VALUE_OUTPUTS))
                    | _prefixed("params", flatten(after.params) if exact else {})
                    | _prefixed("target", flatten(after.meta_state["target_params"]))
                    | _prefixed("grad", recover_gradients(before, after.opt_state[0].mu))
                    | self._carried(after.meta_state)
                )
                found |= _prefixed(f"step{number}", step)
        return found

    def _carried(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rule's state and the two averages."""
        hidden, cell = self._jax.tree.leaves(state["rnn_state"])
        found = {"new_h": hidden, "new_c": cell}
        for name in ("adv", "td"):
            average = state[f"{name}_ema_state"]
            found[f"new_{name}_ema"] = np.array([getattr(average, part) for part in AVERAGE])
        return found


def recover_gradients(before: Mapping[str, Any], after: Mapping[str, Any]) -> NamedArrays:
    """Return the gradients behind Adam's first moments; the original does not report them."""
    old, new = flatten(before), flatten(after)
    return {name: (new[name] - 0.9 * np.float64(old[name])) / 0.1 for name in new}


def _prefixed(prefix: str, named: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}/{name}": value for name, value in named.items()}


def _select(named: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: named[name] for name in names}
