"""Specifications: what is refused and how, and identities that never change by accident."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rulescope import run_spec as specs
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.envs.world_config import WORLDS, Boundary, Catch
from rulescope.learners.disco_config import (
    AGENTS,
    INTERFACES,
    VARIANTS,
    AgentSizes,
    Coefficients,
    Conventions,
    Disco,
    Interface,
)
from rulescope.run_spec import (
    Ablate,
    Freeze,
    Hold,
    Intervention,
    Permute,
    Pin,
    Placebo,
    RandomState,
    Reset,
    RunSpec,
    Transplant,
    canonical,
    checked,
    convert,
    decode,
)

RICH = RunSpec(
    learner=Disco(
        rule="random:3",
        agent=AgentSizes(hidden=(64, 32), model=16),
        conventions=AGENTS["reference"],
        interface=INTERFACES["support30"],
        coefficients=Coefficients(entropy=0.01),
        learning_rate=3e-4,
        batch=8,
        capacity=32,
    ),
    environment=Catch(rows=16, columns=12, dense=True, drift=0.25),
    boundary=Boundary(terminals="synthetic", interval=29),
    scale=1e-3,
    interventions=(Pin(carrier="recurrent"),),
    iterations=500,
    log_every=10,
    lanes=4,
    steps=17,
    seed=11,
    keep=("recurrent",),
)


DEFAULT_ID = "67d6291b301412df4a6ca7808aeafac9d0587b06ece3c68e72bab0157cd9d52c"
RICH_ID = "0f7a6b49d3f644bbcc5b87d2c6ead8fc256d2538c40ebee752b8c5fbe360bab4"


def treated(operation: str, **fields: Any) -> dict[str, Any]:
    """Return a spec as plain data, with one intervention on the recurrent state."""
    return {"interventions": [{"operation": operation, "carrier": "recurrent", **fields}]}


def learner(**fields: Any) -> dict[str, Any]:
    return {"learner": {"kind": "disco", **fields}}


UNKNOWN_KEYS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"lerner": {}}, "lerner: no such key", "learner"),
    ({"iteration": 5}, "iteration: no such key", "iterations"),
    ({"sede": 5}, "sede: no such key", "seed"),
    ({"Seed": 5}, "Seed: no such key", "seed"),
    ({"zzzzzz": 5}, "zzzzzz: no such key", None),
    (learner(lerning_rate=0.1), "learner.lerning_rate: no such key", "learning_rate"),
    (learner(convention={}), "learner.convention: no such key", "conventions"),
    (learner(CARRIERS=["x"]), "learner.CARRIERS: no such key", None),
    (learner(agent={"hiden": [1, 1]}), "learner.agent.hiden: no such key", "hidden"),
    (
        learner(conventions={"retraces": "next"}),
        "learner.conventions.retraces: no such key",
        "retrace",
    ),
    (learner(interface={"bin": 3}), "learner.interface.bin: no such key", "bins"),
    (
        learner(coefficients={"entrpy": 0.1}),
        "learner.coefficients.entrpy: no such key",
        "entropy",
    ),
    (
        {"environment": {"kind": "catch", "row": 8}},
        "environment.row: no such key",
        "rows",
    ),
    ({"boundary": {"terminal": "masked"}}, "boundary.terminal: no such key", "terminals"),
    (
        {"interventions": [{"carier": "recurrent", "operation": "pin"}]},
        "interventions[0].carier: no such key",
        "carrier",
    ),
]

WRONG_CHOICES: list[tuple[dict[str, Any], str, str | None]] = [
    ({"learner": {"kind": "disko"}}, "learner.kind: 'disko' is not valid", "disco"),
    ({"environment": {"kind": "cach"}}, "environment.kind: 'cach' is not valid", "catch"),
    (
        learner(conventions={"action_model": "chain"}),
        "learner.conventions.action_model: 'chain' is not valid",
        "chained",
    ),
    (
        learner(conventions={"loss_mask": "in_trajectory"}),
        "learner.conventions.loss_mask: 'in_trajectory' is not valid",
        "in-trajectory",
    ),
    (
        learner(conventions={"forget_bias": 2}),
        "learner.conventions.forget_bias: '2' is not valid",
        None,
    ),
    (
        learner(interface={"transform": "liner"}),
        "learner.interface.transform: 'liner' is not valid",
        "linear",
    ),
    (
        learner(agent={"torso": "channels"}),
        "learner.agent.torso: 'channels' is not valid",
        "channel",
    ),
    (
        {"boundary": {"terminals": "mask"}},
        "boundary.terminals: 'mask' is not valid",
        "masked",
    ),
    (
        {"interventions": [{"carrier": "recurrent", "operation": "pinn"}]},
        "interventions[0].operation: 'pinn' is not valid",
        "pin",
    ),
    (
        {"change": {"kind": "action-flp", "at": 9}},
        "change.kind: 'action-flp' is not valid",
        "action-flip",
    ),
    (
        {"environment": {"kind": "deepsea"}},
        "environment.kind: 'deepsea' is not valid",
        "deep-sea",
    ),
    (
        treated("transplant", mode="clmp", donor={}),
        "interventions[0].mode: 'clmp' is not valid",
        "clamp",
    ),
    (
        treated(
            "transplant",
            mode="clamp",
            donor={"learner": {"kind": "disco", "conventions": {"sign_log": "lg"}}},
        ),
        "interventions[0].donor.learner.conventions.sign_log: 'lg' is not valid",
        "log",
    ),
    (
        treated(
            "ablate", mode="clamp", which="principle", at=4, components=1, donors=[{}, {"seed": 1}]
        ),
        "interventions[0].which: 'principle' is not valid",
        "principal",
    ),
    ({"keep": ["recurent"]}, "keep: no carrier 'recurent'", "recurrent"),
    ({"keep": ["averages", "momentum"]}, "keep: no carrier 'momentum'", "moments"),
    (
        {
            "interventions": [
                {"carrier": "target", "operation": "pin"},
                {"carrier": "replays", "operation": "pin"},
            ]
        },
        "interventions[1].carrier: no carrier 'replays'",
        "replay",
    ),
    ({"schema": 2}, "schema: '2' is not valid", None),
]

WRONG_VALUES: list[tuple[dict[str, Any], str]] = [
    ({"seed": "1"}, "seed: expected `int`, got `str`"),
    ({"seed": 1.5}, "seed: expected `int`, got `float`"),
    ({"seed": True}, "seed: expected `int`, got `bool`"),
    ({"seed": None}, "seed: expected `int`, got `null`"),
    ({"seed": -1}, "seed: expected `int` >= 0"),
    ({"seed": 2**32}, "seed: expected `int` <= 4294967295"),
    ({"seed": 10**40}, "seed: expected `int`"),
    ({"iterations": 0}, "iterations: expected `int` >= 1"),
    ({"log_every": 0}, "log_every: expected `int` >= 1"),
    ({"lanes": 0}, "lanes: expected `int` >= 1"),
    ({"lanes": 5000}, "lanes: expected `int` <= 4096"),
    ({"steps": 1}, "steps: expected `int` >= 2"),
    ({"scale": 0.0}, "scale: expected `float` > 0.0"),
    ({"scale": -1.0}, "scale: expected `float` > 0.0"),
    ({"scale": "big"}, "scale: expected `float`, got `str`"),
    ({"keep": "recurrent"}, "keep: expected `array`, got `str`"),
    ({"keep": [3]}, "keep[0]: expected `str`, got `int`"),
    ({"learner": None}, "learner: expected `object`, got `null`"),
    ({"learner": "disco"}, "learner: expected `object`, got `str`"),
    ({"learner": []}, "learner: expected `object`, got `array`"),
    (learner(rule=3), "learner.rule: expected `str`, got `int`"),
    (learner(learning_rate=0), "learner.learning_rate: expected `float` > 0.0"),
    (learner(discount=1.5), "learner.discount: expected `float` <= 1.0"),
    (learner(trace=-0.1), "learner.trace: expected `float` >= 0.0"),
    (learner(averages_decay=1.0), "learner.averages_decay: expected `float` < 1.0"),
    (learner(batch=0), "learner.batch: expected `int` >= 1"),
    (learner(agent={"hidden": [1]}), "learner.agent.hidden: expected `array` of length 2"),
    (learner(agent={"hidden": [1, 0]}), "learner.agent.hidden[1]: expected `int` >= 1"),
    (learner(agent={"hidden": 512}), "learner.agent.hidden: expected `array`, got `int`"),
    (learner(interface={"bins": 2}), "learner.interface.bins: expected `int` >= 3"),
    (learner(interface={"bound": 0}), "learner.interface.bound: expected `float` > 0.0"),
    (learner(coefficients={"z": -1}), "learner.coefficients.z: expected `float` >= 0.0"),
    (learner(conventions={"final_relu": 1}), "learner.conventions.final_relu: expected `bool`"),
    ({"environment": {"kind": "catch", "rows": 1}}, "environment.rows: expected `int` >= 2"),
    ({"environment": {"kind": "catch", "drift": 1.1}}, "environment.drift: expected `float` <= 1"),
    ({"environment": {"kind": "catch", "dense": "no"}}, "environment.dense: expected `bool`"),
    (
        {"boundary": {"terminals": "synthetic", "interval": 0}},
        "boundary.interval: expected `int` >= 1",
    ),
    ({"boundary": ["masked"]}, "boundary: expected `object`, got `array`"),
    ({"interventions": {}}, "interventions: expected `array`, got `object`"),
    ({"interventions": ["pin"]}, "interventions[0]: expected `object`, got `str`"),
    (
        {"interventions": [{"carrier": "recurrent"}]},
        "interventions[0]: object missing required field `operation`",
    ),
]

IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"boundary": {"terminals": "synthetic"}}, "boundary.interval: synthetic terminals need an"),
    ({"boundary": {"interval": 7}}, "boundary.interval: has no meaning with terminals 'episodic'"),
    (
        {"boundary": {"terminals": "masked", "interval": 7}},
        "boundary.interval: has no meaning with terminals 'masked'",
    ),
    ({"iterations": 10}, "log_every: 20 is more than iterations (10)"),
    (learner(batch=65, capacity=64), "learner.batch: 65 is more than learner.capacity (64)"),
    ({"keep": ["recurrent", "averages", "recurrent"]}, "keep: 'recurrent' is named twice"),
    (treated("freeze", at=2000), "interventions[0].at: 2000 is not before the last iteration"),
    (treated("reset", at=0), "interventions[0].at: expected `int` >= 1"),
    (treated("freeze"), "interventions[0]: object missing required field `at`"),
    (treated("pin", at=4), "interventions[0].at: no such key"),
    (
        treated("transplant", mode="clamp", donor={"keep": ["averages"]}),
        "interventions[0].donor.keep: a donor must keep its 'recurrent'",
    ),
    (
        treated("transplant", mode="natural", donor={"iterations": 10}),
        "interventions[0].donor.log_every: 20 is more than iterations (10)",
    ),
    (
        treated("random", mode="natural", donors=[{}]),
        "interventions[0].donors: expected `array` of length >= 2",
    ),
    (
        treated("random", mode="natural", donors=[{}, {"keep": ["x"]}]),
        "interventions[0].donors[1].keep: no carrier 'x'",
    ),
    (
        treated("ablate", mode="clamp", which="principal", at=4, components=1, donors=[{}]),
        "interventions[0].donors: expected `array` of length >= 2",
    ),
    (
        treated(
            "ablate",
            mode="clamp",
            which="principal",
            at=4,
            components=2,
            donors=[{}, {"seed": 1}, {"seed": 1}],
        ),
        "interventions[0].components: 2 different donors cannot vary along 2 directions",
    ),
    (
        treated(
            "ablate",
            mode="clamp",
            which="random",
            at=4,
            components=1,
            donors=[{}, {"keep": ["averages"]}],
        ),
        "interventions[0].donors[1].keep: a donor must keep its 'recurrent'",
    ),
    (
        treated(
            "ablate",
            mode="natural",
            which="random",
            at=2000,
            components=1,
            donors=[{}, {"seed": 1}],
        ),
        "interventions[0].at: 2000 is not before the last iteration",
    ),
    ({"world_seed": -1}, "world_seed: expected `int` >= 0"),
    (
        {"change": {"kind": "action-flip", "at": 2000}},
        "change.at: 2000 is not before the last iteration (2000), so nothing would change",
    ),
    (
        {
            "environment": {"kind": "deep-sea"},
            "change": {"kind": "reward-move", "at": 9},
        },
        "change.kind: the reward of 'deep-sea' does not depend on a column that could be moved",
    ),
    (
        {
            "interventions": [
                {"operation": "permute", "carrier": "replay", "at": 1, "mode": "clamp"}
            ]
        },
        "interventions[0].operation: 'permute' makes no trajectories",
    ),
    (
        {
            "interventions": [
                {
                    "operation": "ablate",
                    "carrier": "replay",
                    "which": "principal",
                    "components": 1,
                    "donors": [{"keep": ["replay"]}, {"keep": ["replay"], "seed": 1}],
                    "at": 1,
                    "mode": "clamp",
                }
            ]
        },
        "interventions[0].operation: 'ablate' makes no trajectories; it has no meaning for replay",
    ),
]

BROKEN_TEXT: list[tuple[bytes, str]] = [
    (b"", "not valid JSON"),
    (b"   ", "not valid JSON"),
    (b"{", "not valid JSON"),
    (b"{'seed': 1}", "not valid JSON"),
    (b'{"seed": 1,}', "not valid JSON"),
    (b'{"seed": 1} trailing', "not valid JSON"),
    (b'{"scale": NaN}', "not valid JSON"),
    (b'{"scale": Infinity}', "not valid JSON"),
    (b'{"scale": -Infinity}', "not valid JSON"),
    (b'{"scale": 1e999}', "not valid JSON"),
    (b"\xff\xfe{\x00}\x00", "not valid JSON"),
    (b'{"keep": ["\xff"]}', "not valid JSON"),
    (b'{"\xc3\x28": 1}', "not valid JSON"),
    (b"\x00", "not valid JSON"),
    (b"[" * 100_000, "not valid JSON"),
    (b'{"learner":' * 100_000, "not valid JSON"),
    (b"[" * 200 + b"]" * 200, "top level: expected `object`, got `array`"),
    (b"null", "top level: expected `object`, got `null`"),
    (b'"spec"', "top level: expected `object`, got `str`"),
    (b"[]", "top level: expected `object`, got `array`"),
]


def refusal(data: Any) -> str:
    """Return the message with which JSON of ``data`` is refused."""
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(SpecError) as caught:
        decode(text, "run.json")
    message = str(caught.value)
    assert message.startswith("run.json: ")
    assert "\n" not in message
    return message.removeprefix("run.json: ")


@pytest.mark.parametrize(("data", "start", "close"), UNKNOWN_KEYS + WRONG_CHOICES)
def test_a_misspelling_is_named_with_the_nearest_choice(
    data: dict[str, Any], start: str, close: str | None
) -> None:
    message = refusal(data)
    assert message.startswith(start)
    assert "; valid: " in message
    if close is None:
        assert "nearest" not in message
    else:
        assert f"; nearest: {close!r};" in message


@pytest.mark.parametrize(("data", "start"), WRONG_VALUES + IMPOSSIBLE)
def test_a_wrong_value_is_refused_by_its_key(data: dict[str, Any], start: str) -> None:
    assert refusal(data).startswith(start)


@pytest.mark.parametrize(("text", "start"), BROKEN_TEXT, ids=range(len(BROKEN_TEXT)))
def test_broken_text_is_refused(text: bytes, start: str) -> None:
    assert refusal(text).startswith(start)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("key", "wrap"),
    [
        ("scale", lambda value: {"scale": value}),
        ("learner.learning_rate", lambda value: learner(learning_rate=value)),
        ("learner.interface.bound", lambda value: learner(interface={"bound": value})),
        ("learner.coefficients.z", lambda value: learner(coefficients={"z": value})),
        ("environment.drift", lambda value: {"environment": {"kind": "catch", "drift": value}}),
    ],
    ids=["scale", "rate", "bound", "coefficient", "drift"],
)
def test_a_number_that_is_not_finite_is_refused_wherever_it_comes_from(
    key: str, wrap: Callable[[float], dict[str, Any]], value: float
) -> None:
    """JSON cannot say these, but plain data can."""
    with pytest.raises(SpecError, match=f"spec: {key}: "):
        convert(wrap(value))


@pytest.mark.parametrize(
    ("spec", "start"),
    [
        (RunSpec(iterations=-5), "iterations: expected `int` >= 1"),
        (RunSpec(scale=-1.0), "scale: expected `float` > 0.0"),
        (RunSpec(learner=Disco(batch=0)), "learner.batch: expected `int` >= 1"),
        (RunSpec(learner=Disco(learning_rate=float("inf"))), "learner.learning_rate: "),
        (RunSpec(seed="3"), "seed: expected `int`, got `str`"),  # type: ignore[arg-type]
        (
            RunSpec(boundary=Boundary(terminals="maskd")),  # type: ignore[arg-type]
            "boundary.terminals: 'maskd' is not valid; nearest: 'masked'",
        ),
    ],
    ids=range(6),
)
def test_a_spec_made_in_python_is_held_to_the_same_ranges(spec: RunSpec, start: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f"spec: {start}")):
        checked(spec)


def test_a_spec_made_in_python_is_checked_too() -> None:
    with pytest.raises(SpecError, match=r"spec: interventions\[0\]\.carrier: no carrier 'x'"):
        checked(RunSpec(interventions=(Pin(carrier="x"),)))
    assert checked(RICH) == RICH


def test_a_spec_made_in_python_becomes_what_reading_it_back_gives() -> None:
    loose = RunSpec(keep=["averages", "recurrent"], scale=1)  # type: ignore[arg-type]
    assert checked(loose) == RunSpec()
    assert checked(loose).id == RunSpec().id
    with pytest.raises(SpecError, match=r"numpy\.float64"):
        checked(RunSpec(scale=np.float64(0.1)))


def test_a_file_is_named_in_what_is_said_of_it(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    with pytest.raises(SpecError, match=r"spec\.json: cannot be read \(No such file"):
        specs.read(path)
    path.write_text('{"sede": 1}')
    with pytest.raises(SpecError, match=r"spec\.json: sede: no such key"):
        specs.read(path)
    with pytest.raises(SpecError, match=r"cannot be read \(Is a directory"):
        specs.read(tmp_path)
    path.write_bytes(canonical(RICH))
    assert specs.read(path) == RICH


def test_specs_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        RunSpec().seed = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Disco().batch = 3  # type: ignore[misc]


def test_identities_are_what_they_always_were() -> None:
    """These two may change only with the schema's number: records are found by them."""
    assert RunSpec().id == DEFAULT_ID
    assert RICH.id == RICH_ID


def test_canonical_form_leaves_out_defaults_and_keeps_the_version() -> None:
    assert canonical(RunSpec()) == b'{"schema":1}'
    assert canonical(RunSpec(seed=3)) == b'{"schema":1,"seed":3}'
    longer = canonical(RunSpec(learner=Disco(batch=8, interface=Interface(bound=30.0))))
    expected = b'{"learner":{"batch":8,"interface":{"bound":30.0},"kind":"disco"},"schema":1}'
    assert longer == expected


def test_defaults_written_out_are_the_same_run() -> None:
    text = json.dumps(expanded(RunSpec()))
    assert decode(text).id == RunSpec().id
    assert decode(json.dumps(expanded(RICH))).id == RICH.id


EQUAL_TO_THE_DEFAULT = [
    RunSpec(learner=Disco()),
    RunSpec(learner=Disco(conventions=AGENTS["historical"])),
    RunSpec(learner=Disco(interface=Interface(bound=300.0), coefficients=Coefficients())),
    RunSpec(learner=Disco(agent=AgentSizes(hidden=(512, 512)))),
    RunSpec(environment=Catch(), boundary=Boundary()),
    RunSpec(keep=tuple(["averages", "recurrent"])),
    RunSpec(interventions=tuple([])),
    RunSpec(scale=1, learner=Disco(target_decay=float("0.9"))),
    decode("{}"),
    decode('{"learner": {"kind": "disco"}, "keep": ["averages", "recurrent"]}'),
]


@pytest.mark.parametrize("spec", EQUAL_TO_THE_DEFAULT, ids=range(len(EQUAL_TO_THE_DEFAULT)))
def test_equal_specs_have_one_identity(spec: RunSpec) -> None:
    """However a default was written down, it is the same run."""
    assert spec == RunSpec()
    assert canonical(spec) == b'{"schema":1}'
    assert spec.id == RunSpec().id


def test_a_whole_number_in_place_of_a_float_is_the_same_run() -> None:
    one, two = RunSpec(scale=10), RunSpec(scale=10.0)
    assert one == two
    assert one.id == two.id == decode(canonical(one)).id


def test_order_and_spacing_do_not_matter() -> None:
    one = decode('{"seed": 4, "learner": {"batch": 8, "kind": "disco"}}')
    two = decode('{"learner":{"kind":"disco","batch":8},"seed":4}')
    assert one.id == two.id


def every_struct(part: msgspec.Struct) -> Iterator[msgspec.Struct]:
    yield part
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, msgspec.Struct):
            yield from every_struct(value)


def test_expanded_form_has_every_field() -> None:
    def fields(data: Any) -> int:
        return sum(1 + fields(value) for value in data.values()) if isinstance(data, dict) else 0

    structs = list(every_struct(RunSpec()))
    tags = sum(part.__struct_config__.tag is not None for part in structs)
    named = sum(len(part.__struct_fields__) for part in structs)
    assert fields(expanded(RunSpec())) == named + tags
    assert expanded(RICH)["learner"]["agent"]["hidden"] == [64, 32]
    assert expanded(RICH)["interventions"] == [{"carrier": "recurrent", "operation": "pin"}]
    assert expanded(RunSpec())["environment"]["kind"] == "catch"


def other_value(hint: Any, value: Any) -> Any:
    """Return a value of the field's type that differs from ``value``."""
    if get_origin(hint) is Literal:
        return next(choice for choice in get_args(hint) if choice != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1 if isinstance(value, int) else value / 2 + 0.0625
    if isinstance(value, str):
        return value + "x"
    if value is None:
        return 7
    if value == ():
        return (Pin(carrier="recurrent"),)
    if isinstance(value, Intervention):
        return replace(value, carrier="target")
    assert isinstance(value, tuple)
    return (*value[:-1], other_value(None, value[-1]))


def neighbours(part: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """Yield copies of ``part`` that differ in a single field, at any depth, and which it is."""
    hints = get_type_hints(type(part))
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if isinstance(value, msgspec.Struct):
            for deeper, changed in neighbours(value):
                yield f"{name}.{deeper}", replace(part, **{name: changed})
        elif name != "schema":
            yield name, replace(part, **{name: other_value(hints[name], value)})


@pytest.mark.parametrize("base", [RunSpec(), RICH], ids=["default", "rich"])
def test_every_field_is_part_of_the_identity(base: RunSpec) -> None:
    ids = {"itself": base.id} | {name: changed.id for name, changed in neighbours(base)}
    assert len(ids) > 45
    assert len(set(ids.values())) == len(ids)


def test_named_parts_are_distinct_and_valid() -> None:
    named = [
        *(RunSpec(learner=disco) for disco in VARIANTS.values()),
        *(RunSpec(environment=world) for world in WORLDS.values()),
        *(RunSpec(learner=Disco(conventions=each)) for each in AGENTS.values()),
        *(RunSpec(learner=Disco(interface=each)) for each in INTERFACES.values()),
    ]
    assert all(decode(canonical(each)) == each for each in named)
    # The default is among each of the four families.
    assert len({each.id for each in named}) == len(named) - 3


def choices(kind: type, name: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(get_args(get_type_hints(kind)[name]))


POSITIVE = st.integers(1, 10**6)
UNIT = st.floats(0.0, 1.0)
MAGNITUDE = st.floats(1e-300, 100.0)
CONVENTIONS = st.builds(
    Conventions,
    **{
        name: st.booleans() if hint is bool else st.sampled_from(get_args(hint))
        for name, hint in get_type_hints(Conventions).items()
    },
)
LEARNERS = st.builds(
    Disco,
    rule=st.text(max_size=8),
    agent=st.builds(AgentSizes, hidden=st.tuples(POSITIVE, POSITIVE), model=POSITIVE),
    conventions=CONVENTIONS,
    interface=st.builds(Interface, bound=MAGNITUDE, bins=st.integers(3, 10**4)),
    coefficients=st.builds(Coefficients, entropy=st.floats(0.0, 1e300), value=UNIT),
    learning_rate=MAGNITUDE,
    discount=UNIT,
    averages_decay=st.floats(0.0, 1.0, exclude_max=True),
    batch=st.integers(1, 50),
    capacity=st.integers(50, 10**6),
)
BOUNDARIES = st.one_of(
    st.builds(Boundary, terminals=st.sampled_from(["episodic", "masked"])),
    st.builds(Boundary, terminals=st.just("synthetic"), interval=POSITIVE),
)
CARRIER = st.sampled_from(Disco.CARRIERS)
UNITS = st.sampled_from([name for name in Disco.CARRIERS if name != "replay"])
DONORS = st.builds(RunSpec, seed=st.integers(0, 9), scale=MAGNITUDE, keep=st.just(Disco.CARRIERS))
MODE = st.sampled_from(["natural", "clamp"])
INTERVENTIONS = st.one_of(
    *(st.builds(kind, carrier=CARRIER) for kind in (Pin, Placebo, Hold)),
    *(st.builds(kind, carrier=CARRIER, at=st.integers(1, 99)) for kind in (Freeze, Reset)),
    st.builds(Permute, carrier=UNITS, at=st.integers(0, 99), mode=MODE),
    st.builds(Transplant, carrier=CARRIER, donor=DONORS, mode=MODE),
    st.builds(
        RandomState,
        carrier=UNITS,
        donors=st.lists(DONORS, min_size=2, max_size=3).map(tuple),
        mode=MODE,
    ),
    st.builds(
        Ablate,
        carrier=UNITS,
        donors=st.lists(DONORS, min_size=3, max_size=4, unique=True).map(tuple),
        components=st.integers(1, 2),
        which=choices(Ablate, "which"),
        at=st.integers(0, 99),
        mode=MODE,
    ),
)
SPECS = st.builds(
    RunSpec,
    learner=LEARNERS,
    environment=st.builds(Catch, rows=st.integers(2, 256), dense=st.booleans(), drift=UNIT),
    boundary=BOUNDARIES,
    scale=MAGNITUDE,
    interventions=st.lists(INTERVENTIONS, max_size=3).map(tuple),
    iterations=st.integers(100, 10**9),
    log_every=st.integers(1, 100),
    lanes=st.integers(1, 4096),
    seed=st.integers(0, 2**32 - 1),
    keep=st.lists(st.sampled_from(Disco.CARRIERS), unique=True).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(spec=SPECS)
def test_reading_undoes_writing(spec: RunSpec) -> None:
    again = decode(canonical(spec))
    assert again == spec
    assert canonical(again) == canonical(spec)
    assert decode(json.dumps(expanded(spec))) == spec


@settings(max_examples=30, deadline=None)
@given(one=SPECS, two=SPECS)
def test_identities_are_equal_only_for_equal_specs(one: RunSpec, two: RunSpec) -> None:
    assert (one.id == two.id) == (one == two)
    assert len(one.id) == 64


@settings(max_examples=60, deadline=None)
@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    key=st.sampled_from(RunSpec.__struct_fields__),
)
def test_any_json_is_read_or_refused_but_never_a_crash(data: Any, key: str) -> None:
    for candidate in (data, {key: data}, {"learner": {"kind": "disco", "agent": data}}):
        with suppress(SpecError):
            convert(candidate)


@settings(max_examples=60, deadline=None)
@given(text=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_but_never_a_crash(text: bytes) -> None:
    for candidate in (text, b'{"seed":' + text, canonical(RICH)[: len(text)] + text):
        with suppress(SpecError):
            decode(candidate)


def test_there_are_plenty_of_malformed_specs() -> None:
    every = itertools.chain(UNKNOWN_KEYS, WRONG_CHOICES, WRONG_VALUES, IMPOSSIBLE, BROKEN_TEXT)
    assert len(list(every)) >= 90
