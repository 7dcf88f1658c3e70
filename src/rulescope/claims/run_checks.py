"""Exact claims that need the learner, its world or the rule: parity, identities, pinned states.

Short lifetimes have a rule with random weights and small networks: an identity holds for any rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rulescope import envs, learners
from rulescope.assays import ASSAYS
from rulescope.assays.streams.continuity import STEPS, structural_check
from rulescope.claims.design_checks import paper_cells
from rulescope.claims.exact_result import ExactCheck, Inputs, cannot_check
from rulescope.claims.printed_checks import exposure_rows_differing, printed_rows
from rulescope.claims.printed_numbers import printed
from rulescope.core.arrays import Arrays, bit_equal
from rulescope.core.errors import RecordError, RulescopeError
from rulescope.core.runtime import runtime_identity
from rulescope.envs.world_config import Boundary
from rulescope.learners.baseline_config import A2C, DQN, PPO, NetworkSizes
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco_config import AGENTS, AgentSizes, Disco
from rulescope.learners.learner_config import LearnerSpec
from rulescope.lifetime import Lifetime
from rulescope.numerics.golden import RELEASED_RULE, Golden, GoldenError, default_directory
from rulescope.numerics.parity_checks import compare_all
from rulescope.numerics.parity_table import ParityLine, summarise_check
from rulescope.records import Record, Store
from rulescope.records.store import Problem, read_each
from rulescope.rules.rule_weights import load
from rulescope.run_spec import Pin, PinSteps, RunSpec

RULE = "random:20240"
EPISODIC, MASKED = Boundary(), Boundary(terminals="masked")
"""What a learner observes: every episode end, or none."""
WORLD_STEPS = 700
"""A hundred episodes of 8x8 Catch."""
ITERATIONS = 40
"""Of a short lifetime. A Disco learner updates from the fourth on."""
MATCHED = "dqn-28672"
"""The arm of E3 whose replay is said to be as large as that of the rule."""
PINS = {str(kind.__struct_config__.tag) for kind in (Pin, PinSteps)}
"""Operations that keep a state at zero, as specifications name them."""
SIZES = NetworkSizes(hidden=(32, 32))
"""Of the baselines in short lifetimes."""
PARITY: dict[str, dict[str, str]] = {
    "Forward outputs": {"x:forward-relative": "relative", "x:forward-absolute": "absolute"},
    "Updated parameters": {"x:parameters-after-step": "absolute"},
    "Value estimator": {"x:value-estimator-float64": "absolute"},
    "Meta-gradient": {"x:meta-gradient": "absolute"},
}
"""Published families, the quantities taken from each, and the kind of error of each quantity."""


def check_parity(inputs: Inputs) -> ExactCheck:
    """Compare our arithmetic with arrays of the original program."""
    try:
        golden = Golden(inputs.golden or default_directory())
        rules = list(golden.rules().values())
        found = summarise_check(list(compare_all(golden)), rules, runtime_identity())
    except GoldenError as fault:
        return cannot_check(f"arrays of the original program ({_first_line(fault)})")
    families = {line.name: line for line in found.lines}
    missing = PARITY.keys() - families.keys()
    if missing:
        return cannot_check(f"arrays of the original program for {', '.join(sorted(missing))}")
    return ExactCheck(
        "This implementation against arrays of the original program (agent reference, weights of "
        f"{', '.join(rules)}): the largest errors of four published families. Published numbers "
        "are of another port, on other inputs.",
        {
            name: _error(families[family], measure)
            for family, names in PARITY.items()
            for name, measure in names.items()
        },
    )


def _error(line: ParityLine, measure: str) -> float:
    error = line.relative if measure == "relative" else line.absolute
    return float("inf") if error is None else error  # None: an error that is not finite


def _first_line(fault: RulescopeError) -> str:
    return str(fault).splitlines()[0].rstrip(".")


def check_checkpoint(inputs: Inputs) -> ExactCheck:
    """Count the values of the released checkpoint."""
    try:
        weights = load(RELEASED_RULE, inputs.weights, download=False)
    except RulescopeError as fault:
        return cannot_check(f"the released weights of {RELEASED_RULE} ({_first_line(fault)})")
    count = weights.parameter_count
    return ExactCheck(
        f"The released checkpoint has {count:,} values in {len(weights.arrays)} arrays.",
        {f"x:count-minus-{printed().parameters}": float(count - printed().parameters)},
    )


def check_capacity(_: Inputs) -> ExactCheck:
    """Compare the transitions in the matched replay of DQN with those in the rule's replay."""
    runs = {str(cell.labels["arm"]): cell.runs[0] for cell in paper_cells("E3")}
    matched = runs[MATCHED].learner
    assert isinstance(matched, DQN)
    trajectories, each = count_replay(runs["rule"])
    return ExactCheck(
        f"The arm {MATCHED} of E3 keeps {matched.capacity:,} transitions; the rule's replay keeps "
        f"{trajectories:,} trajectories of {each} transitions.",
        {
            "x:matched-capacity": float(matched.capacity),
            "x:disco-transitions": float(trajectories * each),
        },
    )


def count_replay(run: RunSpec) -> tuple[int, int]:
    """Return the trajectories in the replay of a Disco learner, and the transitions of each."""
    # The rule has no influence on the replay; random weights need no file.
    config = msgspec.structs.replace(run.learner, rule=RULE)
    world = envs.make(run.environment, run.boundary, run.scale, run.lanes)
    learner = learners.make(
        config,
        world.observation_shape,
        world.actions,
        run.steps,
        run.seed,
        interactions=run.interactions,
        iterations=run.iterations,
    )
    assert isinstance(learner, DiscoLearner)
    return learner.replay.capacity, learner.transitions


def check_pinned(inputs: Inputs) -> ExactCheck:
    """Find the largest terminal state of pinned records, or of one short pinned lifetime."""
    problems: list[Problem] = []
    try:
        states = [] if inputs.store is None else list(pinned_states(inputs.store, problems))
    except RecordError as fault:
        return cannot_check(f"a store that can be read ({_first_line(fault)})")
    if states:
        source = f"{len(states)} records with a pinned recurrent state"
    else:
        states = [recurrent_state(run_short(small_disco(), EPISODIC, pinned=True))]
        source = f"a lifetime of {ITERATIONS} iterations with a pinned recurrent state"
    unread = f" ({len(problems)} records could not be read)" if problems else ""
    return ExactCheck(
        f"The largest magnitude in the terminal recurrent states of {source}{unread}.",
        {"x:pinned-terminal-state": largest_magnitude(states)},
    )


def pinned_states(root: Path, problems: list[Problem]) -> Iterator[Arrays]:
    """Yield the terminal recurrent state of every record in which it was pinned.

    Records that cannot be read are added to ``problems``.
    """
    store = Store(root, read_only=True)

    def read_pinned(run: str) -> Arrays:
        items = store.manifest(run).spec["interventions"]
        pinned = any(item["operation"] in PINS and item["carrier"] == "recurrent" for item in items)
        return recurrent_state(store.read(run)) if pinned else {}

    for _, state in read_each(store.ids(), read_pinned, problems):
        if state:  # not every pinned run keeps it
            yield state


def recurrent_state(record: Record) -> dict[str, NDArray[Any]]:
    """Return the arrays of the terminal recurrent state of ``record``."""
    return {name: a for name, a in record.state.items() if name.startswith("recurrent/")}


def largest_magnitude(states: Sequence[Arrays]) -> float:
    """Return the largest magnitude in all arrays; NaN if there is one."""
    return float(np.max([np.abs(array).max() for state in states for array in state.values()]))


def check_exposures(_: Inputs) -> ExactCheck:
    """Compare worlds, short lifetimes and printed rows of exposures that should be the same."""
    same = (EPISODIC, synthetic(7))
    agent = ASSAYS["synthetic"].budget("paper").agent
    subjects: dict[str, LearnerSpec] = {
        "Disco": small_disco(agent),
        "A2C": A2C(agent=SIZES),
        "PPO": PPO(agent=SIZES),
        "DQN": DQN(agent=SIZES, start=100),
    }
    differing = differing_arrays(*(world_trace(boundary) for boundary in same))
    for learner in subjects.values():
        differing += differing_arrays(*(content(run_short(learner, one)) for one in same))
    return ExactCheck(
        f"Catch with a signal every 7 steps and episodic Catch over {WORLD_STEPS} steps, and short "
        f"lifetimes of {', '.join(subjects)} in both; short lifetimes of Disco (agent {agent}) "
        "with a signal every 29 steps and with none: arrays that are not equal to the bit.",
        {
            "x:episodic-minus-synth7": float(differing),
            "x:disco-masked-minus-synth29": float(masked_difference(agent)),
            "x:printed-rows-differing": float(
                exposure_rows_differing(printed_rows("exposure"), printed_rows("synthetic"))
            ),
        },
    )


def masked_difference(agent: str) -> int:
    """Return in how many arrays Disco differs between no signal and one every 29 steps."""
    learner = small_disco(agent)
    return differing_arrays(
        *(content(run_short(learner, boundary)) for boundary in (MASKED, synthetic(29)))
    )


def check_continuity(_: Inputs) -> ExactCheck:
    """Count resets in CatchStream, and in masked Catch as the control."""
    found = structural_check()
    stream, masked = found["CatchStream"], found["masked Catch"]
    return ExactCheck(
        f"{STEPS} steps without drift, with the paddle off centre: reported ends, resets of the "
        "paddle and jumps of the ball in CatchStream, and jumps in masked Catch.",
        {
            "x:terminals-snaps-jumps": float(stream.terminals + stream.snaps + stream.jumps),
            "x:masked-jumps": float(masked.jumps),
        },
    )


def small_disco(agent: str = "published") -> Disco:
    """Return a small Disco learner under a rule with random weights."""
    return Disco(
        rule=RULE,
        agent=AgentSizes(hidden=(32, 32), model=16, head=16),
        conventions=AGENTS[agent],
        batch=8,
        capacity=48,
    )


def synthetic(interval: int) -> Boundary:
    """Return the boundary that signals an end every ``interval`` steps."""
    return Boundary(terminals="synthetic", interval=interval)


def run_short(learner: LearnerSpec, boundary: Boundary, *, pinned: bool = False) -> Record:
    """Return the record of a short lifetime in 8x8 Catch, with all carriers but the replay."""
    life = Lifetime(
        RunSpec(
            learner=learner,
            boundary=boundary,
            interventions=(Pin(carrier="recurrent"),) if pinned else (),
            iterations=ITERATIONS,
            log_every=4,
            # How a trajectory began is stored in the replay, whether the learner reads it or not.
            keep=tuple(name for name in learner.carrier_names if name != "replay"),
        )
    )
    life.run()
    return life.record()


def content(record: Record) -> dict[str, NDArray[Any]]:
    """Return the log columns and the terminal state of ``record``."""
    return {**{f"log/{name}": column for name, column in record.log.items()}, **record.state}


def world_trace(boundary: Boundary) -> dict[str, NDArray[Any]]:
    """Return what a learner would observe of 8x8 Catch under random actions."""
    world = envs.make(RunSpec().environment, boundary, 1.0, 2)
    actions = np.random.default_rng(0).integers(world.actions, size=(WORLD_STEPS, world.lanes))
    first = world.reset(0)
    steps = [world.step(each) for each in actions]
    return {
        "boards": np.array([first, *(step.observation for step in steps)]),
        "rewards": np.array([step.reward for step in steps]),
        "terminals": np.array([step.terminal for step in steps]),
    }


def differing_arrays(one: Arrays, other: Arrays) -> int:
    """Return how many arrays are only in one of the two, or differ in any bit."""

    def only(name: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
        return {name: arrays[name]} if name in arrays else {}

    return sum(not bit_equal(only(name, one), only(name, other)) for name in {*one, *other})
