"""The publication folder's own page: what was found, in Markdown, with its pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rulescope.assays import ASSAYS, design_tables
from rulescope.assays.comparison import Comparison, in_words
from rulescope.assays.figures import FIGURES
from rulescope.assays.published_agreement import AGREEMENT_RULE, JUDGED
from rulescope.assays.results import Table, counted
from rulescope.render.result_files import stem
from rulescope.render.table_formats import DASH, markdown
from rulescope.report.site.estimate_tables import beside
from rulescope.report.site.pages.assay_page import described
from rulescope.report.site.site_model import AssayPage, Exhibited, Site
from rulescope.rules.loading import short

FILE = "README.md"


def overview(site: Site) -> str:
    """Return the page: every assay at a glance, then one by one.

    A picture that several assays feed is shown with the first of them.
    """
    shown: set[tuple[str, Callable[..., object]]] = set()
    parts = ["# Results", _counts(site), *_agreement(site)]
    parts += [_glance(site)] if site.pages else []
    for each in site.pages:
        parts += _assay(each, shown)
    for view in site.views:
        parts += _view(view)
    parts += _tables("Checks without lifetimes", site.checks)
    parts += _tables("Design", design_tables.tables(list(ASSAYS.values())))
    return "\n\n".join(parts) + "\n"


def _counts(site: Site) -> str:
    lived = site.interactions / 1e6
    return (
        f"{counted(len(site.lives), 'lifetime')}, {lived:,.1f} million interactions, {site.begun} "
        f"of {len(ASSAYS)} assays begun. Written by `rulescope report`; its `figures.json` names "
        "the lifetimes behind every picture and table."
    )


def _glance(site: Site) -> str:
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


def _agreement(site: Site) -> Iterator[str]:
    """Yield what differs from the published values, and how that was judged."""
    if not any(site.agreement.values()):
        return
    yield f"## Beside the published values\n\n{in_words(site.agreement)}. {AGREEMENT_RULE}"
    differing = [(each, row) for each, row in site.comparisons if row.verdict == "differs"]
    if differing:
        rows = ["| assay | differs | n | ours | published |", "|---|---|---:|---:|---:|"]
        rows += [_differing(each, row) for each, row in differing]
        yield "\n".join(rows)


def _differing(each: AssayPage, row: Comparison) -> str:
    ours, theirs = beside(row)
    humps = row.agreement.words.removeprefix(row.verdict)
    return f"| {_titled(each)} | `{row.key}`{humps} | {row.ours.n} | {ours} | {theirs} |"


def _titled(each: AssayPage) -> str:
    return each.title + (f" ({each.group})" if each.group else "")


def _assay(each: AssayPage, shown: set[tuple[str, Callable[..., object]]]) -> Iterator[str]:
    """Yield an assay's heading, notes and pictures, and its numbers beside the published ones.

    Some pictures are printed under two labels; they are ``shown`` once.
    """
    yield f"## {_titled(each)}"
    yield f"{each.plan.assay.question} {each.results.budget}."
    if each.results.notes:
        yield "\n".join(f"- {note}" for note in each.results.notes)
    for label in each.figures:
        if (each.group, FIGURES[label]) not in shown:
            words = described(label)
            name = f"{each.group}/{stem(label)}" if each.group else stem(label)
            yield f"![{words}]({name}.png)\n\n*{words}*"
            shown.add((each.group, FIGURES[label]))
    if each.compared:
        count = len(each.compared.rows)
        yield (
            f"<details><summary>Beside the published values ({count})</summary>\n\n"
            f"{markdown(each.compared).strip()}\n\n</details>"
        )


def _tables(title: str, tables: Sequence[Table]) -> Iterator[str]:
    """Yield a heading and what belongs below it, if there is anything."""
    if tables:
        yield f"## {title}"
        yield from (markdown(table).strip() for table in tables)


def _view(view: Exhibited) -> Iterator[str]:
    """Yield a mechanism view's heading, picture and table."""
    what = view.shown
    yield f"## {what.title} ({short(what.rule)})"
    yield what.question
    yield f"![{what.title}]({view.slug}/{what.label}.png)\n\n*{what.caption}*"
    yield markdown(what.table).strip()
