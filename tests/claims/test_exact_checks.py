"""Every exact claim is computed, its predicate is evaluated, and every check can fail."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

import printed_tables
from rulescope.assays.published import PublishedRow
from rulescope.claims import design_checks, interface_checks, printed_checks, run_checks
from rulescope.claims.exact_checks import EXACT_CHECKS, ExactCheck, Inputs
from rulescope.claims.ledger import claims
from rulescope.claims.printed_checks import Rows
from rulescope.claims.printed_numbers import PrintedReferences, printed
from rulescope.core import arrays
from rulescope.learners.disco_config import AGENTS, INTERFACES
from rulescope.numerics.golden import default_directory
from rulescope.records import Record, Store
from rulescope.rules.rule_weights import load
from rulescope.run_spec import RunSpec
from rulescope.stats import Family, exact_iqm, trimmed_mean

PREDICATES = {claim.id: claim.all for claim in claims() if claim.exact}
"""The predicate of every exact claim: all of these atoms."""

NOT_MET = {"below(x:forward-relative, 1.6e-5)"}
"""The bound is the printed maximum of another port on other inputs. Our error relative to the
largest value of an array is larger; our absolute error is smaller than the printed one."""

ATOM = re.compile(r"(\w+)\((x:[\w-]+), (?:(x:[\w-]+)|([\d.e-]+))(?:, ([\d.e-]+))?\)")


def holds(atom: str, measured: Mapping[str, float]) -> bool:
    """Evaluate one atom of a predicate."""
    match = ATOM.fullmatch(atom)
    assert match, atom
    kind, first, second, bound, margin = match.groups()
    value = measured[first]
    if kind == "equivalent":
        return abs(value - measured[second]) <= float(margin)
    if kind == "near_zero":
        return abs(value) <= float(bound)
    return value < float(bound) if kind == "below" else value > float(bound)


@cache
def result(claim: str) -> ExactCheck:
    return EXACT_CHECKS[claim](Inputs())


def test_the_nineteen_exact_claims_have_a_check() -> None:
    assert list(EXACT_CHECKS) == list(PREDICATES)
    assert len(EXACT_CHECKS) == 19


NEED_NOTHING = [claim for claim in PREDICATES if claim != "checkpoint-parameter-count"]


@pytest.mark.parametrize("claim", NEED_NOTHING)
def test_the_predicate_of_every_claim_is_met(claim: str) -> None:
    found = result(claim)
    assert found.checked
    assert all(name.startswith("x:") for name in found.measured)
    failed = {atom for atom in PREDICATES[claim] if not holds(atom, found.measured)}
    assert failed == NOT_MET.intersection(PREDICATES[claim])


@pytest.mark.parametrize(
    ("atom", "value", "expected"),
    [
        ("below(x:a, 1e-3)", 1e-3, False),
        ("below(x:a, 1e-3)", -1.0, True),
        ("above(x:a, 0)", 0.0, False),
        ("near_zero(x:a, 0)", 1e-300, False),
        ("near_zero(x:a, 0.05)", -0.06, False),
        ("near_zero(x:a, 0.05)", math.nan, False),
        ("equivalent(x:a, x:b, 0)", 1.0, False),
        ("equivalent(x:a, x:b, 0)", 2.0, True),
    ],
)
def test_atoms_can_fail(atom: str, value: float, expected: bool) -> None:
    assert holds(atom, {"x:a": value, "x:b": 2.0}) == expected


def test_the_list_of_checks_does_not_import_torch() -> None:
    code = "import sys, rulescope.claims.exact_checks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# What needs a file says so where it is missing.


def test_without_released_weights_nothing_is_counted(tmp_path: Path) -> None:
    found = run_checks.check_checkpoint(Inputs(weights=tmp_path))
    assert not found.checked
    assert found.sentence.startswith("cannot be checked here: needs the released weights")
    assert "\n" not in found.sentence


def test_a_checkpoint_is_counted_value_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def replaced(rule: str) -> ExactCheck:
        monkeypatch.setattr(run_checks, "load", lambda *_, **__: load(rule))
        return run_checks.check_checkpoint(Inputs())

    same_sizes = replaced("random:1").measured
    assert all(holds(atom, same_sizes) for atom in PREDICATES["checkpoint-parameter-count"])
    sizes = [math.prod(array.shape) for array in load("sprout").arrays.values()]
    [difference] = replaced("sprout").measured.values()
    assert difference == sum(sizes) - 754_778


def test_without_arrays_of_the_original_there_is_no_parity(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        found = run_checks.check_parity(Inputs(golden=folder))
        assert not found.checked
        assert found.sentence.startswith("cannot be checked here: needs arrays")


def test_other_arrays_of_the_original_are_no_parity(tmp_path: Path) -> None:
    folder = tmp_path / "golden"
    shutil.copytree(default_directory(), folder)
    stored = arrays.read(folder / "value_f64.npz")
    stored["case0/adv"] = stored["case0/adv"] + 1e-6
    (folder / "value_f64.npz").write_bytes(arrays.pack(stored))
    measured = run_checks.check_parity(Inputs(golden=folder)).measured
    assert not holds("below(x:value-estimator-float64, 1e-12)", measured)
    assert measured["x:value-estimator-float64"] == pytest.approx(1e-6, rel=1e-6)


def test_forward_errors_are_smaller_than_published_in_absolute_terms() -> None:
    measured = result("port-matches-the-original").measured
    assert measured["x:forward-absolute"] < 0.002304
    assert 1.6e-5 < measured["x:forward-relative"] < 5e-5


def test_a_store_that_is_not_there_is_not_replaced_by_a_short_run(tmp_path: Path) -> None:
    found = run_checks.check_pinned(Inputs(store=tmp_path / "none"))
    assert not found.checked
    assert found.sentence.startswith("cannot be checked here: needs a store")


# The value interface.


def test_the_reference_arithmetic_moves_the_mean() -> None:
    moment, readout = interface_checks.projection_errors(AGENTS["reference"])
    assert moment > 1e-9
    assert readout > 1e-6


def test_a_wrong_worked_example_is_found() -> None:
    example = printed().worked_weights[0]
    h = math.sqrt(2.0) - 1.0 + 1e-3
    exact = msgspec.structs.replace(example, weights={300: 1.0 - h, 301: h})
    assert interface_checks.worked_weights_error([exact]) < 1e-12
    other = msgspec.structs.replace(example, weights={300: 0.58480, 301: 0.41520})
    assert interface_checks.worked_weights_error([other]) > 5e-6
    elsewhere = msgspec.structs.replace(example, weights={299: 0.58479, 301: 0.41521})
    assert interface_checks.worked_weights_error([elsewhere]) > 0.5


def test_the_mean_of_one_projection_is_its_target_by_hand() -> None:
    import torch

    for name, config in INTERFACES.items():
        interface = interface_checks.make_interface(name)
        weights = interface.project(torch.tensor([2.5], dtype=torch.float64)).dense(config.bins)
        mean = 0.0
        for atom in range(config.bins):
            mean += float(weights[0, atom]) * (
                -config.bound + 2 * config.bound * atom / (config.bins - 1)
            )
        h = math.sqrt(3.5) - 1.0 + 2.5e-3
        assert mean == pytest.approx(2.5 if name == "linear" else h, abs=1e-12)


def test_another_count_of_bins_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface_checks, "effective_bins", lambda _: 1.5)
    measured = interface_checks.check_effective_bins(Inputs()).measured
    assert measured["x:bins-of-two-onehots-minus-2"] == 0.5
    assert measured["x:bins-of-one-onehot-minus-1"] == 0.5
    assert measured["x:bins-of-uniform-minus-601"] == 599.5


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_wrong_coefficient_is_no_gradient(interface: str) -> None:
    assert interface_checks.value_gradient_error(interface) <= 1e-7
    assert interface_checks.value_gradient_error(interface, coefficient=0.2001) > 1e-7


def test_a_large_target_leaves_the_narrow_support_too() -> None:
    measured = result("linear-support-clips-thousand").measured
    assert measured["x:linear-bound"] == 300.0
    h = math.sqrt(1001.0) - 1.0 + 1.0
    assert measured["x:transformed-target"] == pytest.approx(h, abs=1e-12)
    assert measured["x:narrow-target"] > 30.0
    assert measured["x:narrow-readout"] < 1000.0


# Replay, pinned states, exposures.


def test_the_legacy_alignment_stores_one_transition_more() -> None:
    cells = {str(cell.labels["arm"]): cell for cell in design_checks.paper_cells("E3")}
    run = cells["rule"].runs[0]
    legacy = msgspec.structs.replace(run.learner, conventions=AGENTS["legacy"])
    assert run_checks.count_replay(run) == (1024, 28)
    assert run_checks.count_replay(msgspec.structs.replace(run, learner=legacy)) == (1024, 29)


@cache
def short_run(pinned: bool) -> Record:
    return run_checks.run_short(run_checks.small_disco(), run_checks.EPISODIC, pinned=pinned)


def test_a_live_state_is_not_zero() -> None:
    states = [run_checks.recurrent_state(short_run(pinned)) for pinned in (False, True)]
    assert all(set(state) == {"recurrent/h", "recurrent/c"} for state in states)
    assert run_checks.largest_magnitude(states[:1]) > 0.0
    assert run_checks.largest_magnitude(states[1:]) == 0.0
    broken = {"recurrent/h": np.array([0.0, math.nan])}
    assert math.isnan(run_checks.largest_magnitude([broken]))


def forged(spec: RunSpec) -> Record:
    """Return a record of the pinned ``spec`` with the terminal state of a live run."""
    live = short_run(False)
    return Record.make(
        spec,
        live.log,
        live.state,
        source=live.manifest.source,
        runtime=live.manifest.runtime,
        rule=live.manifest.rule,
        started=datetime.now(UTC),
        seconds=1.0,
    )


def test_only_pinned_records_of_a_store_are_read(tmp_path: Path) -> None:
    store, inputs = Store(tmp_path), Inputs(store=tmp_path)
    store.commit(short_run(False))
    assert "a lifetime of 40 iterations" in run_checks.check_pinned(inputs).sentence
    store.commit(short_run(True))
    found = run_checks.check_pinned(inputs)
    assert "of 1 records" in found.sentence
    assert found.measured["x:pinned-terminal-state"] == 0.0
    store.commit(forged(msgspec.structs.replace(short_run(True).spec, seed=1)))
    found = run_checks.check_pinned(inputs)
    assert "of 2 records" in found.sentence
    assert found.measured["x:pinned-terminal-state"] > 0.0


def test_a_damaged_record_is_reported_and_left_where_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.commit(short_run(True))
    run = store.commit(forged(msgspec.structs.replace(short_run(True).spec, seed=1)))
    (store.folder(run) / "state.npz").write_bytes(b"damaged")
    found = run_checks.check_pinned(Inputs(store=tmp_path))
    assert "of 1 records" in found.sentence
    assert "1 records could not be read" in found.sentence
    assert run in store


@pytest.mark.parametrize("agent", ["reference", "legacy"])
def test_agents_that_use_the_29th_step_distinguish_the_two(agent: str) -> None:
    assert run_checks.masked_difference("published") == 0
    assert run_checks.masked_difference(agent) > 0


def test_another_interval_is_another_world() -> None:
    episodic, eighth, seventh = map(
        run_checks.world_trace,
        (run_checks.EPISODIC, run_checks.synthetic(8), run_checks.synthetic(7)),
    )
    assert run_checks.differing_arrays(episodic, eighth) == 1  # the flags
    for step in range(run_checks.WORLD_STEPS):
        assert seventh["terminals"][step].tolist() == [step % 7 == 6] * 2
        assert episodic["terminals"][step].tolist() == [step % 7 == 6] * 2


def test_arrays_differ_in_names_types_and_bits() -> None:
    one = {"a": np.array([0.0, math.nan]), "b": np.array([1])}
    assert run_checks.differing_arrays(one, {name: a.copy() for name, a in one.items()}) == 0
    assert run_checks.differing_arrays(one, {"a": np.array([-0.0, math.nan]), "b": one["b"]}) == 1
    assert run_checks.differing_arrays(one, {"c": one["a"], "b": one["b"]}) == 2


def test_masked_catch_jumps_once_an_episode() -> None:
    assert result("catchstream-never-resets").measured["x:masked-jumps"] == (1 + 200) // 7


# Printed tables.


def altered(rows: list[PublishedRow], name: str, value: float) -> list[PublishedRow]:
    """Return ``rows`` with another value in the one called ``name``."""
    assert sum(row.name == name for row in rows) == 1
    return [msgspec.structs.replace(row, value=value) if row.name == name else row for row in rows]


def shifted(rows: list[PublishedRow], name: str, change: float) -> list[PublishedRow]:
    """Return ``rows`` with ``change`` added to the value of the one called ``name``."""
    [value] = [row.value for row in rows if row.name == name]
    return altered(rows, name, value + change)


def test_identical_exposures_are_printed_alike() -> None:
    exposure, signals = map(printed_checks.printed_rows, ("exposure", "synthetic"))
    assert printed_checks.exposure_rows_differing(exposure, signals) == 0
    other = shifted(signals, "score/synth29/rule", 1e-5)
    assert printed_checks.exposure_rows_differing(exposure, other) == 1
    fewer = [row for row in exposure if row.name != "score/episodic/a2c"]
    assert printed_checks.exposure_rows_differing(fewer, signals) == 1


@pytest.mark.parametrize(("k", "n", "p"), [(32, 100, 0.3066), (75, 100, 0.5193), (100, 100, 0.94)])
def test_the_two_sided_probability_is_that_of_scipy(k: int, n: int, p: float) -> None:
    expected = scipy_stats.binomtest(k, n, p).pvalue
    assert printed_checks.two_sided(k, n, p) == pytest.approx(expected, rel=1e-9)


def test_counts_of_the_other_formula_would_be_seen() -> None:
    rows = printed_checks.printed_rows("discovery")
    for depth in (12, 14, 16):  # what N free choices would have found
        share = round(1.0 - (1.0 - 2.0**-depth) ** 12_000, 2)
        rows = altered(rows, f"found/random/{depth}", share)
    free, fixed = printed_checks.least_probabilities(rows)
    assert free < 0.001
    assert fixed > 0.05


def test_a_wrong_wilson_bound_is_seen() -> None:
    rows = [row for row in printed_checks.printed_rows("discovery") if row.quantity == "found"]
    assert len(rows) == 12
    wrong = [msgspec.structs.replace(rows[0], low=rows[0].low + 0.002), *rows[1:]]
    assert printed_checks.wilson_error(wrong) > 6e-4


def off(found: list[tuple[str, bool]]) -> list[str]:
    return [name for name, agrees in found if not agrees]


def test_all_printed_windows_are_recomputed() -> None:
    rows = printed_checks.printed_rows("E1")
    names = [name for name, _ in printed_checks.recomputed_windows(rows)]
    assert len(names) == len(set(names)) == 36 + 12 + 12 + 6
    kinds = ("width", "threshold", "contrast")
    assert sorted(names) == sorted(row.name for row in rows if row.quantity in kinds)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("width/catch/pin/half-best", 1.0),
        ("width/catch-long/live/0.8", -1.0),
        ("threshold/catch/live", 0.002),
        ("contrast/catch-dense/half-best", 1.0),
    ],
)
def test_a_wrong_window_is_seen(name: str, change: float) -> None:
    rows = shifted(printed_checks.printed_rows("E1"), name, change)
    assert off(list(printed_checks.recomputed_windows(rows))) == [name]


def test_another_score_has_other_windows() -> None:
    rows = altered(printed_checks.printed_rows("E1"), "score/catch/live/0.001", 0.1)
    wrong = off(list(printed_checks.recomputed_windows(rows)))
    assert "width/catch/live/half-best" in wrong
    assert "contrast/catch/0.8" in wrong


@pytest.mark.parametrize(
    ("assay", "recompute", "count", "name", "change"),
    [
        (
            "minatar-context",
            printed_checks.system_sums,
            10,
            "rule-minus-open-adam/gymnax-freeway/100",
            3e-5,
        ),
        ("OPEN", printed_checks.open_interactions, 4, "interaction/gymnax-breakout/10", 3e-6),
        ("E3", printed_checks.recovery_clocks, 8, "time/action-flip/catch/rule/0.8", 0.1),
    ],
)
def test_a_row_that_does_not_add_up_is_seen(
    assay: str,
    recompute: Callable[[Rows], Iterator[tuple[str, bool]]],
    count: int,
    name: str,
    change: float,
) -> None:
    rows = printed_checks.printed_rows(assay)
    found = list(recompute(rows))
    assert len(found) == count
    assert off(found) == []
    wrong = shifted(rows, name, change)
    assert off(list(recompute(wrong))) == [name]


# The design.


def test_printed_budgets_are_products_of_the_grids() -> None:
    numbers = printed().interactions
    assert numbers["E1"] == 3 * 4 * 7 * 12 * 2000 * 58
    assert numbers["E2"] == 2 * 8 * 12 * 2000 * 58
    assert numbers["E3"] == (2 * 3 * 3 + 3 * 3) * 18 * 3000 * 58
    assert numbers["open-prefix"] + numbers["open-suffix"] == numbers["open-lineage"]
    assert numbers["donor"] == 400 * 58
    assert numbers["horizon"] == 20_000 * 58


def test_every_difference_from_a_printed_number_counts() -> None:
    found = design_checks.count_interactions()
    assert design_checks.sum_differences(found, printed().interactions) == 0
    for name in found:
        wrong = {**printed().interactions, name: printed().interactions[name] - 7}
        assert design_checks.sum_differences(found, wrong) >= 7
    counts = {name: {count} for name, count in design_checks.count_design().items()}
    for name in counts:
        wrong = {**printed().counts, name: printed().counts[name] + 1}
        assert design_checks.sum_differences(counts, wrong) == 1


def test_a_number_without_a_counterpart_is_an_error() -> None:
    with pytest.raises(KeyError, match="b"):
        design_checks.sum_differences({"a": {1}}, {"a": 1, "b": 2})


def test_another_family_has_other_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(design_checks, "PRIMARY", Family("other", [str(n) for n in range(15)]))
    measured = design_checks.check_tails(Inputs()).measured
    assert not any(holds(atom, measured) for atom in PREDICATES["family-11-tails"])


@pytest.mark.parametrize("n", [4, 8, 12, 15, 18, 21])
def test_rank_weights_are_the_shares_of_the_ranks(n: int) -> None:
    first, last = n // 4 + 1, -(-3 * n // 4)
    trimmed, exact = [], []
    for rank in range(1, n + 1):
        kept = first <= rank <= last
        trimmed.append(Fraction(1, last - first + 1) if kept else Fraction(0))
        inside = min(Fraction(rank, n), Fraction(3, 4)) - max(Fraction(rank - 1, n), Fraction(1, 4))
        exact.append(2 * max(inside, Fraction(0)))
    for centre, expected in ((trimmed_mean, trimmed), (exact_iqm, exact)):
        weights = design_checks.rank_weights(centre, n)
        assert weights == pytest.approx([float(share) for share in expected], abs=1e-12)
    differ = max(abs(float(a - b)) for a, b in zip(trimmed, exact, strict=True))
    assert design_checks.rank_weights_difference(n) == pytest.approx(differ, abs=1e-12)
    assert (differ == 0.0) == (n % 4 == 0)


def test_a_wrong_reference_is_seen() -> None:
    right, rate = printed().references, printed().tracking_random_rate
    wrong = {**right, "catch-long": PrintedReferences(-0.87, 1.0)}
    assert design_checks.reference_errors(wrong, rate)["x:reference-error"] > 1e-3
    assert design_checks.reference_errors(right, 0.13)["x:reference-error"] > 1e-3
    dense = {**right, "catch-dense": PrintedReferences(-3.0, 0.75)}
    assert design_checks.reference_errors(dense, rate)["x:dense-reference-error"] > 0.02


def test_printed_references_are_those_of_their_table() -> None:
    names = {"Catch": "catch", "CatchDense": "catch-dense", "CatchLong": "catch-long"}
    table = printed_tables.tables()["v5:tab:app-scale-references"]
    assert printed().references == {
        names[row["Environment"]]: PrintedReferences(row["R_random"], row["R_optimal"])
        for row in table
    }
