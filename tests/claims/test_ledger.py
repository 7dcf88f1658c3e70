"""The ledger: every claim is well formed, and its atoms mean what they say."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from rulescope import assays
from rulescope.assays import narrowed
from rulescope.claims.ledger import (
    LEVELS,
    Claim,
    Name,
    claims,
    contradictions,
    parts_of,
    select,
)
from rulescope.core.errors import RulescopeError

EVERY = pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.id)


def test_claims_have_ids_of_their_own_and_three_levels() -> None:
    assert len({claim.id for claim in claims()}) == len(claims()) == 80
    levels = Counter(claim.level for claim in claims())
    assert levels == {"headline": 7, "main": 33, "appendix": 40}
    assert sum(claim.exact for claim in claims()) == 19


@EVERY
def test_every_claim_is_complete(claim: Claim) -> None:
    assert claim.statement.endswith(".")
    assert claim.where
    assert claim.margin
    assert claim.family >= 1
    assert claim.contradictions == tuple(dict.fromkeys(claim.contradictions))
    assert set(claim.contradictions) <= contradictions().keys()
    assert claim.exact or claim.n > 0
    assert not (claim.exact and claim.cells)


@EVERY
def test_every_atom_is_about_an_open_interval_that_is_not_empty(claim: Claim) -> None:
    parts = claim.parts + claim.size_parts
    assert claim.exact or claim.parts
    for part in parts:
        assert part.low < part.high or (part.low == part.high == 0.0 and not claim.cells)
        assert math.isfinite(part.low) or math.isfinite(part.high)


@EVERY
def test_detectable_effects_belong_to_signs_and_have_them(claim: Claim) -> None:
    signs = {part.first.row: part for part in claim.parts if part.direction}
    assert signs.keys() == claim.detectable.keys()
    for name, part in signs.items():
        assert part.low < claim.detectable[name] < part.high


@EVERY
def test_the_cells_of_a_claim_are_part_of_the_published_grid(claim: Claim) -> None:
    for cells in claim.cells:
        assay = assays.find(cells.assay)
        published = assay.budget("paper")
        budget = narrowed(assay, published, cells.selection())
        whole = {tuple(cell.labels.items()) for cell in assay.grid(published)}
        part = [tuple(cell.labels.items()) for cell in assay.grid(budget)]
        assert part
        assert set(part) <= whole


@EVERY
def test_the_assays_that_atoms_name_are_those_of_the_cells(claim: Claim) -> None:
    if not claim.cells:
        return
    named = {
        name.assay
        for part in claim.parts + claim.size_parts
        for name in (part.first, part.second)
        if name is not None
    }
    assert named == {cells.assay for cells in claim.cells}


ATOMS = {
    "above(a, 0.8)": (("a", None, 0.8, math.inf),),
    "below(a, -2e5)": (("a", None, -math.inf, -2e5),),
    "within(a, 0.5, 0.8)": (("a", None, 0.5, 0.8),),
    "near_zero(a, 0.1)": (("a", None, -0.1, 0.1),),
    "sign(a, +)": (("a", None, 0.0, math.inf),),
    "sign(a, -)": (("a", None, -math.inf, 0.0),),
    "greater(a, b)": (("a", "b", 0.0, math.inf),),
    "greater(a, b, 0.3)": (("a", "b", 0.3, math.inf),),
    "less(a, b)": (("a", "b", -math.inf, 0.0),),
    "less(a, b, 0.3)": (("a", "b", -math.inf, -0.3),),
    "equivalent(a, b, 0.1)": (("a", "b", -0.1, 0.1),),
    "order(a > b > c)": (("a", "b", 0.0, math.inf), ("b", "c", 0.0, math.inf)),
}


@pytest.mark.parametrize("atom", ATOMS)
def test_an_atom_bounds_a_quantity_or_a_difference(atom: str) -> None:
    parts = parts_of([atom], "E1", {})
    found = tuple(
        (part.first.row, part.second.row if part.second else None, part.low, part.high)
        for part in parts
    )
    assert found == ATOMS[atom]
    assert all(part.atom == atom and part.first.assay == "E1" for part in parts)
    assert [part.equivalence for part in parts] == [
        math.isfinite(low) and math.isfinite(high) for _, _, low, high in ATOMS[atom]
    ]


def test_a_name_may_be_that_of_another_assay() -> None:
    [part] = parts_of(["greater(synthetic:score/synth29/a2c, score/a2c)"], "exposure", {})
    assert part.first == Name("synthetic", "score/synth29/a2c")
    assert part.second == Name("exposure", "score/a2c")
    assert part.first.quantity == "score"


@pytest.mark.parametrize(
    "atom", ["above", "above(a)", "above(a, b, c)", "sign(a, *)", "likes(a, b)", "near_zero(a)", ""]
)
def test_what_is_no_atom_is_an_error(atom: str) -> None:
    with pytest.raises(RulescopeError, match="is not an atom"):
        parts_of([atom], "E1", {})


def test_claims_are_selected_by_id_level_assay_and_kind_in_the_order_of_the_ledger() -> None:
    order = [claim.id for claim in claims()]
    assert select([]) == list(claims())
    for names in (["appendix", "headline"], ["E2", "exact"], [order[3], order[1]]):
        found = [claim.id for claim in select(names)]
        assert found == [name for name in order if name in found]
    for level in LEVELS:
        assert select([level]) == [claim for claim in claims() if claim.level == level]
    by_assay = select(["synthetic"])
    assert {claim.id for claim in by_assay} >= {"a2c-needs-a-boundary-signal"}
    assert all("synthetic" in {cells.assay for cells in claim.cells} for claim in by_assay)
    assert all(claim.exact for claim in select(["exact"]))


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(RulescopeError, match=r"--claims: no 'headlines'; nearest: 'headline'"):
        select(["headlines"])
