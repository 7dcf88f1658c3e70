"""Context of the page of mechanism views: figure, table, settings and runs of each."""

from __future__ import annotations

from typing import Any

from rulescope.assays.estimates import label_text
from rulescope.report.page_templates import Sizes, figure_view, render_page, table_view
from rulescope.report.site_model import MechanismView, Site
from rulescope.rules.rule_weights import short
from rulescope.run_spec import RunSpec


def mechanism_page(site: Site, sizes: Sizes) -> str:
    """Return the page; ``sizes`` are those of the figures."""
    return render_page(
        "mechanism",
        site,
        title="Mechanism",
        here="mechanism.html",
        views=[_view(site, view, sizes) for view in site.views],
    )


def _view(site: Site, view: MechanismView, sizes: Sizes) -> dict[str, Any]:
    exhibit = view.exhibit
    base = f"{view.folder}/{exhibit.label}"
    alt = f"{exhibit.title}. The numbers are in the table below."
    return {
        "slug": view.slug,
        "title": exhibit.title,
        "question": exhibit.question,
        "rule": exhibit.rule,
        "rule_name": short(exhibit.rule),
        "figure": figure_view(base, alt, exhibit.caption, exhibit.label, sizes),
        "table": table_view(exhibit.table),
        "scales": [label_text(scale) for scale in exhibit.scales],
        "seeds": f"{exhibit.seeds:,}",
        "iterations": f"{exhibit.iterations:,}",
        "command": _command(view),
        "runs": [_run(site, run.name, run.spec, run.science_hash) for run in exhibit.runs],
    }


def _command(view: MechanismView) -> str:
    exhibit = view.exhibit
    scales = ",".join(label_text(scale) for scale in exhibit.scales)
    option = "" if exhibit.scales == (1.0,) else f" --scales {scales}"
    return (
        f"rulescope mechanism {exhibit.name} --rule {exhibit.rule}{option} "
        f"--seeds {exhibit.seeds} --iterations {exhibit.iterations}"
    )


def _run(site: Site, name: str, spec: RunSpec, science_hash: str) -> dict[str, Any]:
    """Return one observed run. On another machine, its record may differ in the last bit."""
    recorded = site.runs.get(spec.id)
    interventions = (f"{each.operation} {each.carrier}" for each in spec.interventions)
    return {
        "name": name,
        "id": spec.id,
        "present": recorded is not None,
        "same_result": recorded is not None and recorded.manifest.science_hash == science_hash,
        "learner": str(spec.learner.__struct_config__.tag),
        "arm": " + ".join(interventions) or "live",
        "science_hash": science_hash,
        "scale": label_text(spec.scale),
        "seed": f"{spec.seed}",
    }
