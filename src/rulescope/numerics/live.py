"""The original JAX program, run beside ours on inputs that nobody has stored.

Golden arrays prove agreement at the points somebody chose once; this proves it at new ones. The
original is called as a user would call it: its agent's ``learner_step`` for whole updates, its
rule's ``unroll_meta_net`` for the rule alone. Every input is drawn by NumPy, and what the original
draws for itself is overwritten, so no random stream of JAX matters.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope import arrays, seeds
from rulescope.arrays import Arrays
from rulescope.errors import RulescopeError
from rulescope.learners.base import under
from rulescope.numerics.comparison import PRECISIONS, TOLERANCES, Comparison, compare
from rulescope.numerics.forward import ForwardCase
from rulescope.numerics.golden import RANDOM_RULE, RELEASED_RULE, Golden, rule_weights, to_theirs
from rulescope.numerics.inner import SMALL_AGENT, inner, small_update
from rulescope.rules import locate, registry
from rulescope.rules.loading import load

MODULES = ("jax", "chex", "dm_env.specs", "disco_rl.types", "disco_rl.agent")
INSTALL = "pip install jax git+https://github.com/google-deepmind/disco_rl"
KNOWN = "commit 9059a29 of disco_rl with jax 0.10.2, dm-haiku 0.0.17, rlax 0.1.9, chex 0.1.92"
"""What agreed with ours when this was written."""

RULE_OUTPUTS = ("pi", "y", "z", "meta_input_emb")
VALUE_OUTPUTS = (
    *("q_value", "q_target", "q_td", "normalized_q_td"),
    *("adv", "normalized_adv", "qv_adv", "normalized_qv_adv"),
)
AVERAGE = ("moment1", "moment2", "decay_product")
BOARD, ACTIONS, UPDATES = (4, 4, 1), 3, 3
"""What the small agent sees, what it can do, and how often :func:`inner` updates it."""

Named = dict[str, NDArray[Any]]


def compare_live(seed: int = 0) -> Iterator[Comparison]:
    """Run the original on inputs drawn from ``seed`` and compare ours with it.

    The released rule takes part if its weights are here. Raises :class:`RulescopeError` where the
    original cannot be imported or is not the program we know.
    """
    original = Original()
    rules = {"rand": RANDOM_RULE}
    if locate.find(registry.get(RELEASED_RULE)) is not None:
        rules["real"] = RELEASED_RULE
    for item in chain(_rule_alone(original, rules, seed), _updates(original, rules, seed)):
        family = f"live {item.family}"
        tolerance = TOLERANCES.get((family, item.precision), item.tolerance)
        yield item._replace(family=family, tolerance=tolerance)


def _rule_alone(original: Original, rules: Mapping[str, str], seed: int) -> Iterator[Comparison]:
    """Compare targets, values and carried state, from an empty and from a used state."""
    inputs = rule_inputs(seeds.stream(seed, "live.rule"))
    for precision, (_, dtype) in PRECISIONS.items():
        for start in ("zero", "nonzero"):
            case = ForwardCase(inputs, start, dtype)
            for key, rule in rules.items():
                ours = case.values() | case.rule_outputs(rule)
                theirs = original.targets(inputs, start, load(rule).arrays, precision)
                for name, expected in theirs.items():
                    where = f"{key}/{start}/{name}"
                    yield compare("forward", precision, where, ours[name], expected)


def _updates(original: Original, rules: Mapping[str, str], seed: int) -> Iterator[Comparison]:
    """Have the original make golden arrays of consecutive updates, and check ours against them."""
    common = update_inputs(seeds.stream(seed, "live.updates"))
    with TemporaryDirectory() as folder:
        made = {"inner_common": common} | {
            f"inner_{key}_{suffix}": original.updates(common, load(rule).arrays, precision)
            for precision, (suffix, _) in PRECISIONS.items()
            for key, rule in rules.items()
        }
        for name, content in made.items():
            Path(folder, f"{name}.npz").write_bytes(arrays.pack(content, compress=False))
        yield from inner(Golden(Path(folder)))


def rule_inputs(rng: Generator, steps: int = 7, lanes: int = 3, actions: int = 5) -> Named:
    """Draw all that the rule reads, under the names of the golden arrays.

    Network outputs are logits [steps + 1, lanes, ...]; rewards and flags are [steps, lanes].
    """
    slots = (steps + 1, lanes)
    heads = {"logits": (actions,), "y": (600,), "z": (actions, 600), "q": (actions, 601)}
    found: Named = {
        f"{network}/{head}": rng.standard_normal((*slots, *shape))
        for network in ("agent", "target")
        for head, shape in heads.items()
    }
    return found | {
        "behaviour/logits": rng.standard_normal((*slots, actions)),
        "actions": rng.integers(actions, size=slots, dtype=np.int32),
        "rewards": rng.standard_normal((steps, lanes)),
        "is_terminal": rng.random((steps, lanes)) < 0.25,
        "nonzero/h": np.tanh(rng.standard_normal(128)),
        "nonzero/c": rng.standard_normal(128),
        "nonzero/adv_ema": _used_average(rng),
        "nonzero/td_ema": _used_average(rng),
    }


def _used_average(rng: Generator) -> NDArray[np.float64]:
    """Draw a moving average [3] that has seen thirty batches: moments and product of decays."""
    left, mean, deviation = 0.99**30, rng.standard_normal(), 1.0 + rng.random()
    return np.array([(1 - left) * mean, (1 - left) * (mean**2 + deviation**2), left])


def update_inputs(rng: Generator, slots: int = 9, lanes: int = 4) -> Named:
    """Draw an agent, another one as its target, and a rollout for each update.

    A rollout holds what arrived in each of its slots. Boards repeat, so that merging equal rows in
    the closed form of our update has something to merge.
    """
    agent = small_update(rule_weights(RANDOM_RULE, torch.float32)).agent
    names = to_theirs(agent.layout.views(torch.zeros(agent.layout.size)))
    found: Named = {}
    for network in ("params0", "target0"):
        for name, like in names.items():
            std = 0.1 if like.ndim == 1 else like.shape[0] ** -0.5
            found[f"{network}/{name}"] = std * rng.standard_normal(like.shape)
    boards = rng.standard_normal((8, *BOARD))
    for number in range(UPDATES):
        rollout = {
            "observations": boards[rng.integers(len(boards), size=(slots, lanes))],
            "actions": rng.integers(ACTIONS, size=(slots, lanes), dtype=np.int32),
            "rewards": rng.standard_normal((slots, lanes)),
            "discounts": (rng.random((slots, lanes)) > 0.25).astype(np.float64),
            "behaviour_logits": rng.standard_normal((slots, lanes, ACTIONS)),
        }
        found |= {f"rollout{number}/{name}": array for name, array in rollout.items()}
    return found


def nested(flat: Arrays) -> dict[str, Named]:
    """Group arrays called ``module/part`` by module, which is how the original holds them."""
    tree: dict[str, Named] = {}
    for name, array in flat.items():
        module, _, part = name.rpartition("/")
        tree.setdefault(module, {})[part] = array
    return tree


def flattened(tree: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Undo :func:`nested`."""
    return {name: a for module, parts in tree.items() for name, a in _under(module, parts).items()}


class Original:
    """The original program with a small agent, speaking in names of the golden arrays."""

    def __init__(self) -> None:
        try:
            found = [importlib.import_module(name) for name in MODULES]
        except Exception as fault:  # a package that does not fit another may raise anything
            raise RulescopeError(
                f"the original program cannot be imported here ({_reason(fault)}); install it "
                f"with `{INSTALL}`, or leave out --live"
            ) from None
        self._jax, self._chex, specs, self._types, library = found
        jax = self._jax
        with self._running("float32"):
            settings = library.get_settings_disco()
            settings.learning_rate = SMALL_AGENT.learning_rate
            network, sizes = settings.net_settings.net_args, SMALL_AGENT.agent
            network.dense = sizes.hidden
            network.model_kwargs.head_mlp_hiddens = (sizes.head,)
            network.model_kwargs.lstm_size = sizes.model
            agent = library.Agent(
                single_observation_spec=specs.Array(BOARD, np.float32),
                single_action_spec=specs.BoundedArray((), np.int32, 0, ACTIONS - 1),
                agent_settings=settings,
                batch_axis_name=None,
            )
            self._rule, self._hyper = agent.update_rule, settings.hyper_params.to_dict()
            self._key = jax.random.PRNGKey(0)
            self._start = jax.jit(agent.initial_learner_state)(self._key)
            self._memory = jax.jit(agent.initial_actor_state)(self._key)
            rule, _ = jax.eval_shape(self._rule.init_params, self._key)
            _same_layout("rule", load(RANDOM_RULE).arrays, flattened(rule))
            self._unroll = jax.jit(self._consult)
            self._learn = jax.jit(agent.learner_step, static_argnums=5)

    @contextmanager
    def _running(self, precision: str) -> Iterator[None]:
        """Set JAX up for ``precision``, put it back afterwards, and explain what goes wrong."""
        jax, chex = self._jax, self._chex
        before = jax.config.jax_enable_x64, chex.Array
        try:
            jax.config.update("jax_enable_x64", precision == "float64")
            # With some Pythons a traced value is no instance of chex.Array; the original would
            # then refuse its inputs, or leave out the gate of the lifetime state without a word.
            chex.Array = jax.Array
            # Accelerators may multiply in less than float32.
            with jax.default_device(jax.devices("cpu")[0]):
                yield
        except RulescopeError:
            raise
        except Exception as fault:
            raise RulescopeError(
                f"the installed disco_rl does not run as the one we know ({_reason(fault)}); "
                f"known to work: {KNOWN}"
            ) from fault
        finally:
            jax.config.update("jax_enable_x64", before[0])
            chex.Array = before[1]

    def _cast(self, tree: Any, precision: str) -> Any:
        """Return ``tree`` as JAX arrays, its floats in ``precision``."""

        def cast(leaf: Any) -> Any:
            array = np.asarray(leaf)
            dtype = np.dtype(precision) if array.dtype.kind == "f" else array.dtype
            return self._jax.numpy.asarray(array, dtype)

        return self._jax.tree.map(cast, tree)

    def targets(self, inputs: Arrays, start: str, rule: Arrays, precision: str) -> Named:
        """Return what the rule says of ``inputs`` (see :func:`rule_inputs`)."""
        with self._running(precision):
            state = dict(self._start.meta_state)
            if start == "nonzero":
                used, tree = under("nonzero", inputs), self._jax.tree
                form = tree.structure(state["rnn_state"])
                state["rnn_state"] = tree.unflatten(form, [used["h"], used["c"]])
                for name in ("adv", "td"):
                    moments = zip(AVERAGE, used[f"{name}_ema"], strict=True)
                    state[f"{name}_ema_state"] = self._types.EmaState(**dict(moments))
            # The original evaluates the target network itself. Ours to choose is what a network
            # is: here it is the table of its own outputs.
            state["target_params"] = under("target", inputs)
            rollout = {
                "observations": np.zeros(inputs["actions"].shape),
                "actions": inputs["actions"],
                "rewards": inputs["rewards"],
                "is_terminal": inputs["is_terminal"],
                "agent_out": under("agent", inputs),
                "behaviour_agent_out": under("behaviour", inputs),
            }
            given = self._cast((nested(rule), state, rollout), precision)
            output, state = self._unroll(*given)
            values = _under("value_out", _pick(output, VALUE_OUTPUTS))
            return _plain(_pick(output, RULE_OUTPUTS) | values | self._carried(state))

    def _consult(self, rule: Any, state: Any, rollout: Any) -> Any:
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

    def updates(self, common: Arrays, rule: Arrays, precision: str) -> Named:
        """Return consecutive updates on ``common`` (see :func:`update_inputs`)."""
        found: Named = {}
        with self._running(precision):
            params, target = (nested(under(name, common)) for name in ("params0", "target0"))
            _same_layout("agent", flattened(params), flattened(self._start.params))
            carried = self._start.meta_state | {"target_params": target}
            start = self._start.replace(params=params, meta_state=carried)
            state, weights = self._cast((start, nested(rule)), precision)
            for number in range(UPDATES):
                rollout = self._cast(self._rollout(under(f"rollout{number}", common)), precision)
                before = _plain(flattened(state.opt_state[0].mu))
                state, _, log = self._learn(self._key, rollout, state, self._memory, weights, False)
                after = _plain(flattened(state.opt_state[0].mu))
                step = (
                    _pick(log, ("total_loss", "global_gradient_norm", "global_update_norm"))
                    | _under("meta_out", _pick(log["meta_out"], RULE_OUTPUTS + VALUE_OUTPUTS))
                    | _under("params", flattened(state.params))
                    | _under("target", flattened(state.meta_state["target_params"]))
                    | _under("grad", gradients(before, after))
                    | self._carried(state.meta_state)
                )
                found |= _under(f"step{number}", _plain(step))
        return found

    def _rollout(self, slots: Arrays) -> Any:
        logits = slots["behaviour_logits"]
        told = _pick(slots, ("observations", "actions", "rewards", "discounts"))
        return self._types.ActorRollout(
            **told, logits=logits, agent_outs={"logits": logits}, states=self._memory
        )

    def _carried(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rule's state and the two averages."""
        hidden, cell = self._jax.tree.leaves(state["rnn_state"])
        found = {"new_h": hidden, "new_c": cell}
        for name in ("adv", "td"):
            moments = [getattr(state[f"{name}_ema_state"], part) for part in AVERAGE]
            found[f"new_{name}_ema"] = np.array([float(moment) for moment in moments])
        return found


def gradients(before: Arrays, after: Arrays) -> Named:
    """Recover the gradient from Adam's first moment, which the original does not report itself."""
    return {name: (after[name] - 0.9 * before[name].astype(np.float64)) / 0.1 for name in after}


def _same_layout(what: str, ours: Arrays, theirs: Arrays) -> None:
    """Raise unless the original has the arrays we know, in name and shape."""
    known, found = ({name: a.shape for name, a in side.items()} for side in (ours, theirs))
    if known != found:
        name = min(name for name in known | found if known.get(name) != found.get(name))
        raise RulescopeError(
            f"the installed disco_rl has another {what} than the one we know ({name}: "
            f"{found.get(name, 'missing')}, not {known.get(name, 'there')}); known: {KNOWN}"
        )


def _under(prefix: str, named: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}/{name}": value for name, value in named.items()}


def _pick(named: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: named[name] for name in names}


def _plain(named: Mapping[str, Any]) -> Named:
    return {name: np.asarray(value) for name, value in named.items()}


def _reason(fault: Exception) -> str:
    return f"{type(fault).__name__}: {(str(fault).splitlines() or [''])[0]}"
