"""``rulescope claims``: verdicts on the published claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claims.made_up_evidence import add_scores, claim_of
from command_line import invoke, invoke_json
from rulescope.claims.ledger import claims
from rulescope.core.errors import RecordError, RulescopeError, SpecError
from rulescope.records import Store

COLD = claim_of("matched-prior-beats-a-cold-start")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store in which six of six seeds are for a claim."""
    store = Store(tmp_path / "store")
    better = {"match-clamp": 0.9, "live": 0.5}
    add_scores(store, COLD, range(6), lambda labels, _: better[str(labels["arm"])])
    return store


def test_the_published_numbers_are_summed_up_in_a_sentence() -> None:
    output = invoke("claims", "--published", "--no-check").output
    first = " ".join(output.split("\n\n")[0].split())
    assert first.startswith(f"{len(claims())} claims: ")
    for words in ("22 undecided", "39 reproduced", "19 exact (not checked)"):
        assert words in first
    assert "contradicted," not in first


def test_the_ledger_is_also_data() -> None:
    found = invoke_json("claims", "--published", "--no-check")
    assert [one["id"] for one in found] == [claim.id for claim in claims()]
    by_id = {one["id"]: one for one in found}
    window = by_id["pinned-window-spans-three-decades"]
    assert window["verdict"] == "reproduced"
    assert "C1" in window["contradictions"]
    assert len(window["parts"]) == 7
    assert window["parts"][0]["high"] is None  # an infinite bound is no number of JSON
    assert window["cost"] is None
    assert window["runs"] == []


def test_verdicts_on_records_say_what_they_rest_on(store: Store) -> None:
    [found] = invoke_json("claims", "--claims", COLD.id, "--store", store.root)
    assert (found["verdict"], found["n"], found["least_n"]) == ("reproduced", 6, 6)
    assert found["looks"] == [6, 9, 12, 18, 27]
    assert {part["one_sided_error"] for part in found["parts"]} == {0.025}
    assert "6, 9, 12, 18, 27" in found["stopping"]
    assert sorted(found["runs"]) == sorted(store.ids())
    [part] = found["parts"]
    assert (part["outcome"], part["seeds_inside"], part["n"]) == ("holds", 6, 6)


def test_a_single_claim_is_shown_part_by_part(store: Store) -> None:
    output = invoke("claims", "--claims", COLD.id, "--store", store.root).output
    text = " ".join(output.split())
    assert text.startswith("1 claim: 1 reproduced.")
    assert "Stopping rule: whole seed blocks, looked at only when there are 6, 9" in text
    assert "0.0250" in text  # the error of the part on each side


def test_what_is_undecided_has_its_cost(store: Store) -> None:
    names = "cross-donor-dead-when-clamped,matched-prior-beats-a-cold-start"
    found = invoke_json("claims", "--claims", names, "--store", store.root)
    dead, cold = found
    assert (dead["verdict"], cold["cost"]) == ("undecided", None)
    assert dead["cost"]["seeds"] in dead["looks"]
    assert dead["cost"]["lifetimes"] > 0
    assert 0 < dead["cost"]["chance"] <= 1
    output = " ".join(invoke("claims", "--claims", names, "--store", store.root).output.split())
    assert output.startswith("2 claims: 1 undecided, 1 reproduced.")


def test_evidence_from_another_agent_is_marked(store: Store) -> None:
    words = ["claims", "--claims", COLD.id, "--agent", "legacy", "--store", str(store.root)]
    [found] = invoke_json(*words)
    assert (found["verdict"], found["why"]) == ("not comparable", "agent legacy")


def test_an_unknown_claim_is_an_error_that_names_the_option_and_the_nearest() -> None:
    with pytest.raises(RulescopeError, match=r"--claims: no 'headlin'; nearest: 'headline'"):
        invoke("claims", "--claims", "headlin", "--published")


def test_an_unknown_agent_is_an_error_that_names_the_option_and_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"--agent: no 'legcy'; nearest: 'legacy'"):
        invoke("claims", "--agent", "legcy")


def test_a_store_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no such store"):
        invoke("claims", "--claims", COLD.id, "--store", tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_json_has_no_number_that_is_none(store: Store) -> None:
    text = invoke("claims", "--claims", "E2", "--store", store.root, "--json").stdout
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
