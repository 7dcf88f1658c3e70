"""Numbers and tables in the pages are those of the records, the code and the measurements."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path
from typing import get_args

import pytest

import printed_tables
from documents import pages, spans
from documents.analyses import Source
from documents.repository import Repository
from documents.spans import DocumentError
from documents.spec_fields import GROUPS
from documents.tables import OTHERS, TABLES, Tables
from documents.values import FACTS, Values, count_code_lines
from rulescope.assays import ASSAYS, PRESETS
from rulescope.assays.figures import FIGURES
from rulescope.cli.main import VERBS
from rulescope.envs.world_config import EnvironmentSpec
from rulescope.learners.disco_config import AGENTS
from rulescope.learners.learner_config import LearnerSpec
from rulescope.report import publication
from rulescope.run_spec import Intervention

ROOT = Path(__file__).parents[1]
AGENT = "historical"
"""The agent that most records are of."""
PAGES = [page.relative_to(ROOT).as_posix() for page in Repository().pages]


@pytest.fixture(scope="module")
def repository() -> Repository:
    return Repository()


@pytest.fixture(scope="module")
def values(repository: Repository) -> Values:
    return Values(repository, AGENT)


@pytest.fixture(scope="module")
def tables(repository: Repository) -> Tables:
    return Tables(repository, AGENT)


def answers(words: str) -> str:
    return f"<{words}>"


# --- the pages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_up_to_date(repository: Repository, name: str) -> None:
    page = ROOT / name
    assert pages.filled(page, repository) == page.read_text(encoding="utf-8"), "run `make docs`"


def test_a_stale_number_is_found_and_corrected(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh, old = tmp_path / "fresh.md", tmp_path / "old.md"
    count = len(repository.analyses.records)
    fresh.write_text(f"There are <!-- value: records -->{count:,}<!-- /value -->.")
    old.write_text("There are <!-- value: records -->226<!-- /value -->.")
    monkeypatch.setattr(Repository, "pages", [fresh, old])
    assert list(pages.stale(repository)) == [(old, fresh.read_text())]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a <!-- value: recods -->1<!-- /value -->", "value: no 'recods'; nearest: 'records'"),
        ("<!-- table: E1-score -->\n<!-- /table -->", "table: no 'E1-score'; nearest: 'E1-scores'"),
        ("<!-- agent: referense -->", "agent: .* no 'referense'; nearest: 'reference'"),
    ],
)
def test_an_unknown_name_is_an_error_that_names_the_page_and_the_nearest(
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    message: str,
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    monkeypatch.setattr(repository, "root", tmp_path)
    with pytest.raises(DocumentError, match=rf"^page\.md: {message}"):
        pages.filled(page, repository)


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "replication/README.md"])
def test_numbers_of_records_and_assays_are_generated_not_typed(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    typed = re.sub(r"<!-- value: .*?<!-- /value -->", "", text)
    typed = re.sub(r"<!-- table: .*?<!-- /table -->", "", typed, flags=re.DOTALL)
    assert not re.findall(
        r"\b(?:[\d,]*\d|twenty[- ]\w+)\s+(?:assays|records|parameters)\b", typed, re.I
    )


# --- markers --------------------------------------------------------------------------------------


def test_values_and_tables_are_written_between_their_markers() -> None:
    text = "One <!-- value: a b -->old<!-- /value -->.\n\n<!-- table: t -->\nold\n<!-- /table -->\n"
    expected = text.replace("-->old<", "--><a b><").replace("\nold\n", "\n<t>\n")
    assert spans.fill(text, answers, answers) == expected
    assert spans.fill(expected, answers, answers) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a <!-- value: x -->1", "without its other half"),
        ("a 1<!-- /value -->", "without its other half"),
        ("<!-- table: x -->\n|", "without its other half"),
        ("a <!-- value: x -->1 <!-- value: y -->2<!-- /value -->", "comes before its end"),
        ("a\n<!-- value: x -->1<!-- /value -->", "beginning of a line ends the paragraph"),
    ],
)
def test_markers_that_would_go_wrong_are_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        spans.fill(text, answers, answers)


def test_a_page_names_its_agent_and_a_marker_may_name_another() -> None:
    assert spans.agent("# Title\n\n<!-- agent: reference -->\n") == "reference"
    assert spans.agent("# Title\n") is None
    assert Source.of("E1", "reference") == ("E1", "reference")
    assert Source.of("E1@legacy", "reference") == ("E1", "legacy")
    assert Source.of("E-POP", "reference") == ("E-POP", None), "it has no Disco learner"


# --- values ---------------------------------------------------------------------------------------


def test_records_are_counted_one_by_one(values: Values) -> None:
    manifests = (ROOT / "replication" / "store" / "runs").glob("*/*/manifest.json")
    assert values("records") == f"{sum(1 for _ in manifests):,}"


def test_lines_of_code_are_counted_without_blank_ones_comments_and_docstrings(
    values: Values,
) -> None:
    source = '"""Doc."""\n\n# why\nX = 1\n\ndef f():\n    """Doc.\n\n    M."""\n'
    source += "    return (\n        X\n    )\n"
    assert count_code_lines(source) == 5
    assert 5 < int(values("code-lines learners/dpo.py")) < 20
    with pytest.raises(DocumentError, match="no module 'learners/dpe'"):
        values("code-lines learners/dpe")


def test_an_estimate_is_shown_whole_or_in_part(values: Values) -> None:
    key = "published minatar-context open-minus-open-adam/gymnax-breakout/1"
    assert values(f"{key} .4") == "−0.0002 [−0.0068, 0.0016]"
    assert values(f"{key} value .5") == "−0.00017"
    assert values(f"{key} bounds .3") == "[−0.007, 0.002]"
    assert values(f"{key} n") == "8"
    assert values("published conventions gap/catch-1000/reference value .0") == "1,413"
    assert values("published conventions gap/catch-1000/reference value .2 /1750") == "0.81"


def test_a_difference_is_our_value_minus_the_published_one(values: Values) -> None:
    key = "exposure score/natural/dqn"
    shown = [
        float(values(f"{kind} {key} value .5").replace("−", "-")) for kind in ("ours", "published")
    ]
    difference = float(values(f"difference {key} .4").replace("−", "-"))
    assert difference == pytest.approx(shown[0] - shown[1], abs=1e-4)


def test_lifetimes_on_both_sides_of_a_limit_are_all(values: Values) -> None:
    below, above = (
        int(values(f"seeds E1 score/catch/pin/1000 {side} 0.5")) for side in ("below", "from")
    )
    assert below + above == int(values("ours E1 score/catch/pin/1000 n"))
    assert min(below, above) > 0


def test_crossings_are_those_of_the_logs(repository: Repository, values: Values) -> None:
    first = []
    for run in repository.analyses.plan(Source("E2", AGENT)).cells[0].runs:
        if run.id in repository.analyses.records:
            log = repository.analyses.store.read(run.id).log
            rows = zip(log["iteration"].tolist(), log["score"].tolist(), strict=True)
            first.append(next(iteration for iteration, score in rows if score >= 0.5))
    assert values("crossings E2 0.001/live 0.5") == f"{min(first):,.0f} and {max(first):,.0f}"


def test_another_agent_has_other_records(values: Values) -> None:
    assert int(values("held E1")) > 0
    assert values("held E1@legacy") == "0"
    assert values("runs E1@legacy") == values("runs E1") == "1,008"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ours E1 score/catch/live", "E1: no estimate 'score/catch/live'; nearest:"),
        ("ours E11 score", "no assay 'E11'; nearest: 'E1'"),
        ("published E1 scores", "E1: nothing published as 'scores'"),
        ("ours E1 score/catch/live/1 mean", "no part 'mean'"),
        ("seeds E1 score/catch/live below 1", "E1: no seeds of 'score/catch/live'; nearest:"),
        ("seeds E1 score/catch/live/1 above 1", "no relation 'above'"),
        ("crossings E2 0.001/life 0.5", "E2: no cell '0.001/life'; nearest: '0.001/live'"),
        ("crossings E2 0.001/live 2", "no lifetime of '0.001/live' is ever at 2"),
        ("rule sprout weight", "no fact 'weight'"),
        ("measured bench/output/catsh", "no 'catsh'; nearest: 'catch'"),
        ("runs", "value: runs: "),
        ("records now", "value: no 'records'"),
    ],
)
def test_an_unknown_value_is_an_error(values: Values, words: str, message: str) -> None:
    with pytest.raises(DocumentError, match=re.escape(message)):
        values(words)


def test_every_fact_has_a_text(repository: Repository) -> None:
    assert all(fact(repository) for fact in FACTS.values())


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_every_command_is_in_a_page(repository: Repository, verb: str) -> None:
    assert any(f"rulescope {verb}" in page.read_text() for page in repository.pages)


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TABLES, *OTHERS, *(f"spec {name}" for name in GROUPS)])
def test_every_table_has_rows_of_one_width(tables: Tables, name: str) -> None:
    lines = [line.replace("\\|", "") for line in tables(name).splitlines()]
    rows = [line.count("|") for line in lines if line.startswith("|")]
    assert len(rows) >= 3
    assert len(set(rows)) == 1


def test_a_row_has_our_estimate_the_published_one_and_every_lifetime(
    repository: Repository, tables: Tables, values: Values
) -> None:
    [row] = [line for line in tables("E1-scores").splitlines() if line.startswith("| pin | 10³ |")]
    *_, n, ours, printed, printed_n, seeds = [cell.strip() for cell in row.strip("|").split("|")]
    key = "score/catch/pin/1000"
    assert (ours, printed) == (values(f"ours E1 {key}"), values(f"published E1 {key}"))
    assert (n, printed_n) == (values(f"ours E1 {key} n"), values(f"published E1 {key} n"))
    every = repository.analyses.seeds(Source("E1", AGENT), "score/catch/pin/1000")
    assert [float(f"{value:.2f}") for value in every] == [
        pytest.approx(float(seed.replace("−", "-"))) for seed in seeds.split()
    ]


def test_a_measured_table_comes_with_its_command(tables: Tables) -> None:
    assert tables("measured torture").endswith(".")
    assert "Measured by `make torture`, 2026-" in tables("measured torture")


@pytest.mark.parametrize("name", ["E1-score", "measured tortoise", "coverages", "spec world"])
def test_an_unknown_table_is_an_error(tables: Tables, name: str) -> None:
    with pytest.raises(DocumentError, match=r"nearest: '(E1-scores|torture|coverage|worlds)'"):
        tables(name)


# --- published outputs ----------------------------------------------------------------------------


def test_the_list_of_outputs_has_every_published_table(repository: Repository) -> None:
    assert set(printed_tables.tables()) <= set(repository.outputs["tables"])
    for labels in repository.outputs.values():
        assert len(set(labels)) == len(labels)


def test_outputs_without_code_are_computed_from_the_code(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = repository.without_code
    assert not set(lacking) & FIGURES.keys()
    monkeypatch.delitem(publication.TABLES, "tab:unified-recovery-mapping")
    monkeypatch.delitem(FIGURES, "v5:fig:recovery-mapping")
    assert set(repository.without_code) - set(lacking) == {
        "tab:unified-recovery-mapping",
        "v5:fig:recovery-mapping",
    }


def test_every_output_is_made_or_named_as_missing(repository: Repository) -> None:
    every = [label for labels in repository.outputs.values() for label in labels]
    made = [*repository.made("tables"), *repository.made("figures")]
    named = [*made, *repository.without_code, *repository.without_records]
    assert sorted(named) == sorted(every)


# --- links, terms and completeness ----------------------------------------------------------------

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]*)(?:#([\w-]+))?\)")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def prose(name: str) -> str:
    """Return a page without its code blocks."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", heading.replace("`", "")).lower() for heading in headings]
    return {one.replace(" ", "-") for one in words}


@pytest.mark.parametrize("name", PAGES)
def test_every_link_and_picture_leads_somewhere(name: str) -> None:
    page, text = ROOT / name, prose(name)
    for target, anchor in LINK.findall(text):
        if target.startswith(("http://", "https://")):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"
    for target in PICTURE.findall(text):
        assert (page.parent / target).exists(), target


def test_every_page_is_in_the_list_of_pages() -> None:
    docs = ROOT / "docs"
    listed = {target for target, _ in LINK.findall(prose("docs/README.md"))}
    assert {page.name for page in docs.glob("*.md")} - listed == {"README.md"}
    notes = {target for target, _ in LINK.findall(prose("docs/decisions/README.md"))}
    assert {page.name for page in (docs / "decisions").glob("*.md")} - notes == {"README.md"}


def test_a_term_is_defined_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (\*\*.+?\*\*) \|", text, re.MULTILINE)
    terms = [term for cell in cells for term in re.findall(r"\*\*(.+?)\*\*", cell)]
    assert len(terms) > 60
    assert len(set(terms)) == len(terms)


def test_every_assay_preset_and_operation_is_documented() -> None:
    assays = prose("docs/assays.md")
    for assay in ASSAYS.values():
        assert re.search(rf"^\|[^|]*\| {assay.id} \| `{assay.name}` \|", assays, re.MULTILINE)
    assert all(f"`{preset}`" in prose("docs/glossary.md") for preset in PRESETS)
    interventions = prose("docs/interventions.md")
    for kind in get_args(Intervention):
        assert f"| `{kind.__struct_config__.tag}` |" in interventions


def test_every_world_learner_and_agent_has_a_page_that_names_it() -> None:
    every = re.sub(r"[\s-]", "", "".join(prose(name) for name in PAGES)).lower()
    assert all(f"`{agent}`" in prose("docs/agents.md") for agent in AGENTS)
    for kind in (*get_args(EnvironmentSpec), *get_args(LearnerSpec)):
        assert kind.__name__.lower().removesuffix("world") in every


def dotted_names(name: str) -> set[str]:
    """Return what a page calls ``rulescope.…`` in its prose, and what its examples import."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = set(re.findall(r"`(rulescope(?:\.\w+)+)", text))
    for module, names in re.findall(r"^ *from (rulescope[\w.]*) import (.+)$", text, re.MULTILINE):
        found |= {f"{module}.{one.strip()}" for one in names.split(",")}
    return found - {"rulescope.rules", "rulescope.worlds"}  # groups of entry points


@pytest.mark.parametrize("name", PAGES)
def test_every_name_of_the_package_in_a_page_exists(name: str) -> None:
    for dotted in dotted_names(name):
        pkgutil.resolve_name(dotted)
