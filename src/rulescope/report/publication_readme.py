"""README of the publication folder: all results in Markdown, with their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rulescope.assays import ASSAYS, design_tables
from rulescope.assays.comparison import Comparison, in_words
from rulescope.assays.figures import FIGURES, Drawing
from rulescope.assays.published_agreement import AGREEMENT_RULE, JUDGED
from rulescope.assays.results import Table, counted
from rulescope.audit.atlas_figure import CAPTION
from rulescope.audit.atlas_folder import NAME
from rulescope.audit.atlas_tables import histories_table
from rulescope.claims.ledger_tables import summarise
from rulescope.core.disk import stem
from rulescope.render.tables import DASH, markdown
from rulescope.report.assay_page import figure_caption
from rulescope.report.estimate_tables import compared_texts
from rulescope.report.publication import claims_tables
from rulescope.report.site_model import AssayPage, MechanismView, Site
from rulescope.rules.rule_weights import short

FILE = "README.md"


def publication_readme(site: Site) -> str:
    """Return the text: all assays in one table, then one by one.

    A figure that is drawn from several assays is shown with the first of them.
    """
    shown: set[tuple[str, Drawing]] = set()
    parts = ["# Results", _counts(site), *_claims(site), *_agreement(site)]
    parts += [_assay_table(site)] if site.pages else []
    for each in site.pages:
        parts += _assay(each, shown)
    parts += _atlas(site)
    for view in site.views:
        parts += _view(view)
    parts += _tables("Checks without lifetimes", site.checks)
    parts += _tables("Design", design_tables.tables(list(ASSAYS.values())))
    return "\n\n".join(parts) + "\n"


def _counts(site: Site) -> str:
    millions = site.interactions / 1e6
    return (
        f"{counted(len(site.runs), 'lifetime')}, {millions:,.1f} million interactions, "
        f"{site.started} of {len(ASSAYS)} assays begun. Written by `rulescope "
        "report`; its `figures.json` names the lifetimes behind every picture and table."
    )


def _assay_table(site: Site) -> str:
    rows = [f"| assay | what it asks | lifetimes | {' | '.join(JUDGED)} |"]
    rows += ["|---|---|---:|---:|---:|---:|"]
    for each in site.pages:
        counts = each.agreement.values()
        shown = [f"{count:,}" if any(counts) else DASH for count in counts]
        rows.append(
            f"| {_titled(each)} | {each.plan.assay.question} | {each.present:,} of "
            f"{len(each.plan.runs):,} | {' | '.join(shown)} |"
        )
    return "\n".join(rows)


def _claims(site: Site) -> Iterator[str]:
    """Yield how many claims have each verdict, and the ledger."""
    if site.ledger is None:
        return
    yield "## Claims of the published audit"
    yield summarise([entry.verdict for entry in site.ledger.entries])
    for table in claims_tables(site):
        yield (
            f"<details><summary>{table.title}</summary>\n\n{markdown(table).strip()}\n\n</details>"
        )


def _agreement(site: Site) -> Iterator[str]:
    """Yield the published values that are contradicted, and the rule of comparison."""
    if not any(site.agreement.values()):
        return
    yield f"## Beside the published values\n\n{in_words(site.agreement)}. {AGREEMENT_RULE}"
    contradicted = [(each, row) for each, row in site.comparisons if row.verdict == "contradicted"]
    if contradicted:
        rows = ["| assay | contradicted | n | ours | published |", "|---|---|---:|---:|---:|"]
        rows += [_contradicted(each, row) for each, row in contradicted]
        yield "\n".join(rows)


def _contradicted(each: AssayPage, row: Comparison) -> str:
    ours, theirs = compared_texts(row)
    detail = row.agreement.words.removeprefix(row.verdict)
    return f"| {_titled(each)} | `{row.key}`{detail} | {row.ours.n} | {ours} | {theirs} |"


def _titled(each: AssayPage) -> str:
    return each.title + (f" ({each.group})" if each.group else "")


def _assay(each: AssayPage, shown: set[tuple[str, Drawing]]) -> Iterator[str]:
    """Yield the heading, notes, figures and comparisons of an assay.

    Some figures have two labels; ``shown`` are those that need not be repeated.
    """
    yield f"## {_titled(each)}"
    yield f"{each.plan.assay.question} {each.results.budget}."
    if each.results.notes:
        yield "\n".join(f"- {note}" for note in each.results.notes)
    for label in each.figures:
        if (each.group, FIGURES[label]) not in shown:
            caption = figure_caption(label)
            name = f"{each.group}/{stem(label)}" if each.group else stem(label)
            yield f"![{caption}]({name}.png)\n\n*{caption}*"
            shown.add((each.group, FIGURES[label]))
    if each.compared:
        count = len(each.compared.rows)
        yield (
            f"<details><summary>Beside the published values ({count})</summary>\n\n"
            f"{markdown(each.compared).strip()}\n\n</details>"
        )


def _tables(title: str, tables: Sequence[Table]) -> Iterator[str]:
    """Yield a heading and the tables below it, if there are any."""
    if tables:
        yield f"## {title}"
        yield from (markdown(table).strip() for table in tables)


def _atlas(site: Site) -> Iterator[str]:
    """Yield the answers, sentences and figure of the audited rules side by side."""
    if site.atlas is None:
        return
    yield "## Audited rules side by side"
    yield markdown(histories_table(site.atlas)).strip()
    yield "\n".join(f"- {sentence}" for sentence in site.atlas.sentences)
    yield f"![Every rule at every measure]({NAME}/{NAME}.png)\n\n*{CAPTION}*"


def _view(view: MechanismView) -> Iterator[str]:
    """Yield the heading, figure and table of a mechanism view."""
    exhibit = view.exhibit
    yield f"## {exhibit.title} ({short(exhibit.rule)})"
    yield exhibit.question
    yield f"![{exhibit.title}]({view.slug}/{exhibit.label}.png)\n\n*{exhibit.caption}*"
    yield markdown(exhibit.table).strip()
