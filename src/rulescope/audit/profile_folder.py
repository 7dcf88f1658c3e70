"""The profile of a rule as a folder: one table, one picture, one file for programs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from dataclasses import replace as with_fields
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from msgspec.structs import replace
from rich.console import RenderableType
from rich.text import Text

from rulescope.assays.figure_data import Cell
from rulescope.assays.figures import ENDINGS
from rulescope.assays.panels import draw_estimate, draw_lifetimes
from rulescope.assays.results import Column, Table, Value
from rulescope.audit import optimiser_profile
from rulescope.audit.history_answer import LEAST_SEEDS, MARGIN, describe_groups
from rulescope.audit.profile import (
    FILE,
    FROZEN,
    RULE,
    Axis,
    Measure,
    Profile,
    ProfileValue,
    columns,
)
from rulescope.audit.profile_axes import LEARNERS
from rulescope.core.disk import write_whole
from rulescope.render import palette
from rulescope.render.arm_styles import ARMS, ArmStyle
from rulescope.render.palette import GREY, NOTE, PALE
from rulescope.render.style import SMALL, WIDTH, Page, save, styled
from rulescope.render.tables import cell, markdown, terminal, write_table
from rulescope.stats import Estimate

_ARMS = {**optimiser_profile.ARMS, **LEARNERS, "rule-freeze": FROZEN}
STYLES = {column: ARMS[arm]._replace(name="") for arm, column in _ARMS.items()} | {
    "Adam": ARMS["adam"]._replace(name="", marker="d"),
    "untrained": ARMS["initial"]._replace(name="", marker="*"),
}
"""By column: the style that its arm has everywhere. (Two markers differ: profiles of optimisers and
of learners have different arms in one style.)

The column of the frozen state has its iteration in its name; here it is known by how it begins."""
BOUNDED = ("score", "share", "return")
"""Units in which 0 is nothing and 1 is all there is."""
UNITS = {
    "score": "score, share or return",
    "decades": "decades",
    "thousands": "thousand interactions",
    "rate": "reward per interaction",
    "raw": "above random play, in units of the world",
}
ANSWER_CHARACTERS, ANSWER_LINE = 108, 0.15
"""Characters in a line of the answer, which stands above all panels, and its height in inches."""
LEFT, TOP, ROW, BELOW = 3.5, 0.42, 0.24, 0.32
"""Inches: room for the names of measures, for the legend, of a line, and for an axis."""
COLUMN, COUNTS = 0.14, 0.6
"""Inches: of a mark in a line with several, and right of a panel for numbers of lifetimes."""
INTERVALS = (
    "Brackets are 95 % intervals over seeds (percentile bootstrap; Wilson for shares; those of "
    "planned differences are wider, as they share one error rate; those of differences within "
    "seeds are no narrower than Student's t). Round brackets are the lowest and highest seed, "
    "where there are too few for an interval."
)
COMPETENCE = "0.8 counts as competent. An arm that is competent at no scale has no window."
SCORES = f"Score: 0 is random play, 1 is optimal, {COMPETENCE}"
PINS = (
    "Pinned: the history is cleared after every iteration (a recurrent state is set to zero, "
    "another carrier to its initial value); frozen: it is kept as it was at that iteration."
)
PINS_OF_AN_OPTIMISER = "Pinned: the state is set to zero after every step of the optimiser."
RULES = (
    f"An axis decides from {LEAST_SEEDS} seeds on. The history is an asset where the rule with it "
    "{competent} and does better, a burden where the rule without it {does} and does better: by at "
    "least {margin}, with an interval of the difference, paired by seed, that leaves out 0. An "
    "interval within ±{margin} is no effect. Neither needs no effect wherever an arm {does}; "
    "anything else is undecided."
)
"""How the answer is found, given what competent means."""
GATE = (
    "The capability gate: every lifetime of an arm ends above its untrained policy and above the "
    "random policy."
)


def rules(profile: Profile) -> str:
    """Return how the answer of ``profile`` is found; empty without an answer or a history."""
    if not _has_history(profile):
        return ""
    if not _of_optimiser(profile):
        return RULES.format(
            competent="is competent (0.8)", does="is competent", margin=f"{MARGIN:g}"
        )
    gain = f"{optimiser_profile.MARGIN:.0%} of the gain over the untrained policy".replace(
        "%", " %"
    )
    passes = "passes the capability gate"
    return f"{RULES.format(competent=passes, does=passes, margin=gain)} {GATE}"


def intervals(profile: Profile) -> str:
    """Return what the numbers of ``profile`` are, as far as they are in it."""
    if _of_optimiser(profile):
        return f"{INTERVALS} {PINS_OF_AN_OPTIMISER}"
    without_history = profile.answer is not None and not _has_history(profile)
    return " ".join([INTERVALS, _scores(profile), *([] if without_history else [PINS])])


def _scores(profile: Profile) -> str:
    """Return what a score is, in the world of the audit."""
    if not profile.world:
        return SCORES
    raw = any(one.unit == "raw" for axis in profile.axes for one in axis.measures)
    where = f"In {profile.world}, {profile.references}."
    return where if raw else f"{where} {COMPETENCE}"


def _has_history(profile: Profile) -> bool:
    return profile.answer is not None and profile.answer.verdict != "no history"


def _of_optimiser(profile: Profile) -> bool:
    """Tell whether the rule is an optimiser, whose rewards have no scale from random to optimal."""
    return any(
        measure.source == optimiser_profile.ID for axis in profile.axes for measure in axis.measures
    )


def table(profile: Profile) -> Table:
    """Return every line of ``profile``, the rule first and the others beside it."""
    names = columns(profile)
    rows: list[tuple[Value, ...]] = []
    for axis in profile.axes:
        for number, measure in enumerate(axis.measures):
            shown = (_shown(measure, name) for name in names)
            rows.append((axis.name if number == 0 else "", measure.title, *shown, _n(measure)))
    heads = (profile.rule if name == RULE else name for name in names)
    return Table(
        "profile",
        f"Profile of {profile.rule}, preset {profile.preset}",
        (Column("Axis"), Column("Measure"), *(Column(head) for head in heads), Column("n")),
        tuple(rows),
        intervals(profile),
        tells_n=False,
    )


def _shown(measure: Measure, column: str) -> str | None:
    found = measure.figures.get(column)
    return None if found is None else shown(found, measure.digits)


def shown(found: ProfileValue, digits: int) -> str:
    """Return a number as it is read, with what it leaves out."""
    number, more = cell(found.estimate(), Column("", digits)), shown_beside(found)
    return f"{number}; {more}" if more else number


def shown_beside(found: ProfileValue) -> str:
    """Return what a number leaves out: class and ends of a window, or two groups of lifetimes."""
    if found.window is not None:
        return found.window.label
    return "" if found.groups is None else describe_groups(found.groups)


def _n(measure: Measure) -> str:
    counts = sorted({figure.n for figure in measure.figures.values() if figure.n})
    return "–".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "0"


def write_profile(profile: Profile, parts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write ``profile`` into ``folder``; return the paths, the overview first.

    ``parts`` maps the id of each assay to the name of its folder beside the profile.
    """
    made = [save(picture(profile), folder / f"profile.{end}", title="profile") for end in ENDINGS]
    data = write_whole(folder / FILE, profile.to_json())
    overview = write_whole(folder / "README.md", _overview(profile, parts).encode())
    return [overview, data, *write_table(table(profile), folder), *made]


def _overview(profile: Profile, parts: Mapping[str, str]) -> str:
    sentences = [
        f"- **{axis.name}.** {' '.join(filter(None, (axis.question, axis.verdict)))}"
        for axis in profile.axes
    ]
    lines = [
        f"# Audit of {profile.rule}",
        *([f"**{profile.answer.sentence}**"] if profile.answer is not None else []),
        *filter(None, [rules(profile)]),
        f"{profile.learner}. Preset {profile.preset}.",
        "\n".join(sentences),
        "![The profile: every measure with its interval](profile.png)",
        markdown(table(profile)).strip(),
    ]
    lines += ["\n".join(f"- {note}" for note in profile.notes)] if profile.notes else []
    links = [f"- [{name}]({place}/README.md)" for name, place in parts.items()]
    lines += ["Every assay with its tables, figures and lifetimes:", "\n".join(links)]
    return "\n\n".join(lines) + "\n"


def summary(profile: Profile) -> list[RenderableType]:
    """Return ``profile`` for a terminal: each axis with its question, verdict and numbers.

    The answer is not among them: it is the last line of the command (:func:`last_line`).
    """
    made: list[RenderableType] = []
    for axis in profile.axes:
        made.append(
            Text.assemble((axis.name, "bold"), f": {axis.question}" if axis.question else "")
        )
        made.append(Text(axis.verdict, style="italic"))
        if axis.measures:
            one = table(replace(profile, axes=(axis,)))
            lines = tuple(row[1:] for row in one.rows)
            plain = with_fields(one, columns=one.columns[1:], rows=lines, title="", note="")
            made.append(terminal(plain))
        made.append(Text())
    return [*made, Text(intervals(profile))]


def last_line(profile: Profile) -> Text:
    """Return the answer for a terminal."""
    return Text(profile.answer.sentence if profile.answer is not None else "", style="bold")


@styled
def picture(profile: Profile) -> Picture:
    """Draw every measure as a line of dots with their intervals, one colour for each column.

    Measures of one axis and unit share a panel, so that what has one scale can be compared.
    """
    blocks = [block for axis in profile.axes for block in _blocks(axis)]
    names = columns(profile)
    answer = profile.answer.sentence if profile.answer is not None else ""
    lines = textwrap.wrap(answer, ANSWER_CHARACTERS)
    top = TOP + ANSWER_LINE * len(lines)
    height = top + sum(_height(block) for block in blocks)
    page = Page(height, f"{profile.learner}, preset {profile.preset}. {intervals(profile)}")
    _legend(page, profile, names)
    y = 1 - TOP / page.height
    page.figure.text(0.1 / page.width, y, "\n".join(lines), size=8, weight="bold", va="top")
    for block in blocks:
        high = block.row * len(block.measures)
        axes = page.axes(LEFT, top + block.above, WIDTH - LEFT - COUNTS, high)
        _draw(axes, block, names)
        if block.title:
            y = 1 - (top + block.above - 0.1) / page.height
            page.figure.text(0.1 / page.width, y, block.title, size=8.5, weight="bold")
        top += _height(block)
    return page.finish() if blocks else page.figure


class _Block(NamedTuple):
    """Measures of one axis in one unit: either levels or differences."""

    title: str
    unit: str
    measures: tuple[Measure, ...]

    @property
    def above(self) -> float:
        """Room for the title, in inches."""
        return 0.34 if self.title else 0.06

    @property
    def row(self) -> float:
        """Inches of a measure: room for the marks of every column, and their lifetimes."""
        return max(ROW, COLUMN * max(len(measure.figures) for measure in self.measures))

    @property
    def difference(self) -> bool:
        """Whether zero means that there is no effect."""
        return self.measures[0].difference


def _blocks(axis: Axis) -> list[_Block]:
    """Return the panels of ``axis``; shares, scores and returns are all between 0 and 1.

    Differences have panels of their own: their zero is another.
    """
    by_unit: dict[tuple[str, bool], list[Measure]] = {}
    for measure in (
        m for m in axis.measures if any(f.value is not None for f in m.figures.values())
    ):
        unit = "score" if measure.unit in BOUNDED else measure.unit
        by_unit.setdefault((unit, measure.difference), []).append(measure)
    return [
        _Block(axis.name if number == 0 else "", unit, tuple(measures))
        for number, ((unit, _), measures) in enumerate(by_unit.items())
    ]


def _height(block: _Block) -> float:
    return block.above + block.row * len(block.measures) + BELOW


def _draw(axes: Axes, block: _Block, names: list[str]) -> None:
    for row, measure in enumerate(block.measures):
        present = [name for name in names if name in measure.figures]
        for turn, name in enumerate(present):
            step = 0.9 / max(len(present), 1)
            shift = (turn - (len(present) - 1) / 2) * step
            _mark(axes, row + shift, measure.figures[name], style_of(name), step * block.row)
    write_counts(axes, block.measures)
    axes.set_ylim(len(block.measures) - 0.45, -0.55)
    axes.set_yticks(range(len(block.measures)), [measure.title for measure in block.measures])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    for row in range(1, len(block.measures)):
        axes.axhline(row - 0.5, color=PALE, lw=0.5, zorder=0)
    if block.unit == "score" and not block.difference:
        low, high = axes.get_xlim()
        axes.set_xlim(min(low - 0.03, -0.06), max(high + 0.03, 1.06))
    if block.unit in ("decades", "thousands"):
        low, high = axes.get_xlim()
        figures = [figure for measure in block.measures for figure in measure.figures.values()]
        # The ends of a window stand to the right of it.
        room = 1.3 if any(figure.window is not None for figure in figures) else 1.0
        axes.set_xlim(min(low, 0.0), max(high, 1.0) * room)
    if block.difference:
        low, high = axes.get_xlim()
        axes.axvline(0.0, color=GREY, lw=0.8, zorder=1)
        free = 0.03 * (high - low)  # marks at the ends are drawn whole
        axes.set_xlim(min(low - free, -0.05), max(high + free, 0.05))
    unit = f"difference: {UNITS[block.unit]}" if block.difference else UNITS[block.unit]
    axes.set_xlabel(unit, labelpad=1, size=SMALL)


def write_counts(axes: Axes, measures: Sequence[Measure]) -> None:
    """Write the number of lifetimes behind each line at its right."""
    for row, measure in enumerate(measures):
        axes.annotate(
            f"n = {_n(measure)}",
            (1.0, row),
            xycoords=axes.get_yaxis_transform(),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            size=5.8,
            color=NOTE,
        )


def _mark(axes: Axes, place: float, found: ProfileValue, how: ArmStyle, room: float) -> None:
    """Draw a figure at a height; two groups of lifetimes as two marks, a window with its ends.

    Its lifetimes stand below it, within ``room`` inches.
    """
    seeds = tuple(each for each in found.seeds if each is not None)
    one = Cell(**asdict(found.estimate()), seeds=seeds)
    if found.groups is not None:
        ends = (found.groups.low, found.groups.high)
        axes.plot(ends, [place, place], color=how.colour, lw=0.6, ls=":", zorder=2)
        parts = [Estimate(end, math.nan, math.nan, one.n, method="none") for end in ends]
        for part in parts:
            draw_estimate(axes, place, part, how, across=True)
        draw_lifetimes(axes, place, seeds, how, across=True, start=0.04, lanes=2)
        return
    draw_estimate(axes, place, one, how, across=True, room=room)
    if found.window is not None and not one.missing:
        axes.annotate(
            found.window.label,
            (max(one.value, one.high) if math.isfinite(one.high) else one.value, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            size=5,
            color=how.colour,
            annotation_clip=False,
        )


def style_of(column: str) -> ArmStyle:
    """Return how a column is drawn."""
    if column.startswith(FROZEN):
        return STYLES[FROZEN]
    return STYLES.get(column) or ArmStyle(column, palette.NOTE, "<")


def _legend(page: Page, profile: Profile, names: list[str]) -> None:
    """Name the colours, at the top."""
    handles = [
        Line2D([], [], color=how.colour, marker=how.marker, mfc=how.face, lw=1.3, ms=4.6)
        for how in map(style_of, names)
    ]
    labels = [profile.rule if name == RULE else name for name in names]
    page.figure.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0.05 / page.width, 1 - 0.05 / page.height),
        ncols=4,
        frameon=False,
        fontsize=7.5,
        handlelength=1.8,
        columnspacing=1.6,
    )
