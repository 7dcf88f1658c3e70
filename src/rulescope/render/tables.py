"""Tables of results: as data, as Markdown, CSV and LaTeX, and for the terminal."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from rulescope.core.disk import stem, write_whole
from rulescope.stats import Estimate
from rulescope.stats.intervals import Method

if TYPE_CHECKING:
    from rich.table import Table as TerminalTable

Value = str | int | float | Estimate | None
"""What may stand in a table; None is a dash: there is nothing to report."""


class WrittenEstimate(msgspec.Struct, frozen=True):
    """An estimate as it is written to a file; None where a number is not finite."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: Method
    family: int = 1

    @classmethod
    def of(cls, found: Estimate) -> Self:
        """Return ``found`` as it is written to a file."""
        value, low, high = map(finite, (found.value, found.low, found.high))
        return cls(value, low, high, found.n, found.method, found.family)

    def estimate(self) -> Estimate:
        """Return the estimate again."""
        value, low, high = (math.nan if x is None else x for x in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.n, family=self.family, method=self.method)


def finite(number: float) -> float | None:
    """Return ``number``, or None if it is not finite."""
    return float(number) if math.isfinite(number) else None


class Column(NamedTuple):
    """A heading, and how the numbers below it are printed."""

    heading: str
    digits: int = 3
    """Decimals of floats and estimates."""
    interval: bool = True
    """Whether estimates are printed with their interval."""


@dataclass(frozen=True)
class Table:
    """A published table, with our numbers in it."""

    label: str
    """As in the published text, such as ``tab:e1-all``."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str
    """Below the table: whose lifetimes, their length, estimator, kind of interval."""
    tells_n: bool = True
    """Whether n stands below the table, rather than in a column of its own."""

    @property
    def n(self) -> tuple[int, int] | None:
        """The fewest and the most lifetimes behind an estimate, if that stands below the table."""
        cells = [cell for row in self.rows for cell in row if isinstance(cell, Estimate)]
        found = [cell.n for cell in cells if not cell.missing]
        return (min(found), max(found)) if found and self.tells_n else None


def in_numbers(fewest: int, most: int) -> str:
    """Return a number of seeds as a phrase.

    >>> in_numbers(1, 1), in_numbers(4, 12)
    ('1 seed', '4 to 12 seeds')
    """
    span = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{span} seed{'s' if most != 1 else ''}"


DASH = "—"
"""Printed for missing values."""
RANGE_MARK = "(a to b)"
"""A note that contains this explains its ranges itself: they are not over the seeds."""
RANGE_NOTE = f"{RANGE_MARK}: lowest and highest value over the seeds, no confidence interval."
MINUS = "−"


def write_tables(tables: Iterable[Table], folder: Path) -> list[Path]:
    """Write ``tables`` into ``folder`` as .md, .csv and .tex; return the paths."""
    return [path for table in tables for path in write_table(table, folder)]


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write ``table`` into ``folder`` under its label; return the three paths."""
    name = stem(table.label)
    texts = {"md": markdown(table), "csv": comma_separated(table), "tex": latex(table)}
    return [
        write_whole(folder / f"{name}.{ending}", text.encode()) for ending, text in texts.items()
    ]


def cell(value: Value, column: Column) -> str:
    """Return ``value`` as text: ``0.828 [0.553, 0.931]``, a dash if it is missing.

    A range over the seeds, which is no confidence interval, is in round brackets.
    """
    if value is None:
        return DASH
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value).replace("-", MINUS)
    if isinstance(value, float):
        return number(value, column.digits)
    shown = number(value.value, column.digits)
    if shown == DASH or not _has_interval(value, column):
        return shown
    low, high = number(value.low, column.digits), number(value.high, column.digits)
    return f"{shown} ({low} to {high})" if value.method == "range" else f"{shown} [{low}, {high}]"


def number(value: float, digits: int) -> str:
    """Return ``value`` with ``digits`` decimals, a true minus sign, and no negative zero."""
    if math.isnan(value):
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        return text.lstrip("-")
    return text.replace("-", MINUS)


def note(table: Table) -> str:
    """Return the note below ``table``, with the marks of its cells explained."""
    ranges = RANGE_MARK not in table.note and any(
        isinstance(value, Estimate)
        and value.method == "range"
        and _has_interval(value, column)
        and not math.isnan(value.value)
        for row in table.rows
        for value, column in zip(row, table.columns, strict=True)
    )
    seeds = "" if table.n is None else f"n = {in_numbers(*table.n)}; "
    parts = (f"{seeds}{table.note.strip()}", RANGE_NOTE if ranges else "")
    return " ".join(part for part in parts if part)


def markdown(table: Table) -> str:
    """Return ``table`` as GitHub-flavoured Markdown, its title above and its note below."""
    sides = ["---" if textual else "---:" for textual in _textual(table)]
    body = [
        [_markdown(cell(v, c)) for v, c in zip(r, table.columns, strict=True)] for r in table.rows
    ]
    lines = [
        f"**{_markdown(table.title)}** (`{table.label}`)",
        "",
        _piped([_markdown(column.heading) for column in table.columns]),
        _piped(sides),
        *(_piped(row) for row in body),
    ]
    below = note(table)
    return "\n".join([*lines, "", _markdown(below), ""] if below else [*lines, ""])


def comma_separated(table: Table) -> str:
    """Return ``table`` as CSV in full precision; missing values are empty fields.

    A column of estimates becomes five: value, low, high, n, and the kind of its interval.
    """
    estimated = [any(isinstance(row[i], Estimate) for row in table.rows) for i in _places(table)]
    header: list[str] = []
    for column, several in zip(table.columns, estimated, strict=True):
        parts = ("value", "low", "high", "n", "interval")
        header += [f"{column.heading} {p}" for p in parts] if several else [column.heading]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in table.rows:
        fields: list[str] = []
        for value, several in zip(row, estimated, strict=True):
            fields += _fields(value) if several else [_plain(value)]
        writer.writerow(fields)
    return buffer.getvalue()


def latex(table: Table) -> str:
    """Return ``table`` as a LaTeX float with booktabs rules (``\\usepackage{booktabs}``)."""
    sides = "".join("l" if textual else "r" for textual in _textual(table))
    headings = [f"\\textbf{{{_latex(column.heading)}}}" for column in table.columns]
    rows = [[_latex(cell(v, c)) for v, c in zip(r, table.columns, strict=True)] for r in table.rows]
    below = note(table)
    lines = [
        r"\begin{table}[htbp]",
        r"\centering\small",
        rf"\caption{{{_latex(table.title)}}}\label{{{table.label}}}",
        rf"\begin{{tabular}}{{@{{}}{sides}@{{}}}}",
        r"\toprule",
        " & ".join(headings) + r" \\",
        r"\midrule",
        *(" & ".join(_guarded(row)) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *([rf"\par\smallskip\footnotesize {_latex(below)}"] if below else []),
        r"\end{table}",
    ]
    return "\n".join([*lines, ""])


def terminal(table: Table) -> TerminalTable:
    """Return ``table`` for a rich console; brackets in its cells are not markup."""
    from rich.table import Table as TerminalTable  # here: every process imports this module
    from rich.text import Text

    shown = TerminalTable(
        title=Text(table.title, style="bold"),
        caption=Text(note(table), style="dim") if note(table) else None,
        title_justify="left",
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    for column, textual in zip(table.columns, _textual(table), strict=True):
        side = "left" if textual else "right"
        shown.add_column(
            Text(column.heading, style="bold"),
            justify="left" if side == "left" else "right",
            # a number broken over two lines is two wrong numbers
            no_wrap=not textual,
        )
    for row in table.rows:
        pairs = zip(row, table.columns, strict=True)
        shown.add_row(*(Text(cell(value, column)) for value, column in pairs))
    return shown


def _places(table: Table) -> range:
    return range(len(table.columns))


def _textual(table: Table) -> list[bool]:
    """Return for each column whether it holds words (aligned left) or numbers (right)."""
    return [
        any(isinstance(row[i], str) for row in table.rows)
        and not any(isinstance(row[i], int | float | Estimate) for row in table.rows)
        for i in _places(table)
    ]


def _has_interval(value: Estimate, column: Column) -> bool:
    known = not (math.isnan(value.low) or math.isnan(value.high))
    single = value.method == "range" and value.n < 2  # from itself to itself
    return column.interval and value.method != "none" and known and not single


def _fields(value: Value) -> list[str]:
    if not isinstance(value, Estimate):
        return [_plain(value), "", "", "", ""]
    kind = f"{value.method}, family of {value.family}" if value.family > 1 else value.method
    return [_plain(value.value), _plain(value.low), _plain(value.high), str(value.n), kind]


def _plain(value: Value) -> str:
    """Return ``value`` for programs: shortest exact digits, empty if missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def _piped(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    """Escape Markdown markup; every dialect knows these escapes."""
    escaped = re.sub(r"([\\`*_|])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))
    return " ".join(escaped.split())


LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "–": "--",
    "—": "---",
    "×": r"$\times$",
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≈": r"$\approx$",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
    "Δ": r"$\Delta$",
    "λ": r"$\lambda$",
    "γ": r"$\gamma$",
    "η": r"$\eta$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "…": r"\ldots{}",
    MINUS: "$-$",
}
"""LaTeX commands for special characters, and for those that its fonts may lack."""
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def _latex(text: str) -> str:
    pieces: list[tuple[str, Callable[[str], str]]] = [
        ("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda found: f"$^{{{found.translate(SUPERSCRIPTS)}}}$"),
        # a minus before its number is a sign, with no space after it
        (rf"{MINUS}[0-9]+(?:\.[0-9]+)?", lambda found: f"$-{found[1:]}$"),
        (".", lambda found: LATEX.get(found, found)),
    ]
    pattern = "|".join(f"({expression})" for expression, _ in pieces)

    def replaced(match: re.Match[str]) -> str:
        assert match.lastindex is not None
        return pieces[match.lastindex - 1][1](match.group())

    return re.sub(pattern, replaced, " ".join(text.split()))


def _guarded(cells: list[str]) -> list[str]:
    """Return a row that LaTeX does not read as an option of the preceding ``\\\\``."""
    return [f"{{}}{cells[0]}", *cells[1:]] if cells[0].startswith(("[", "*")) else cells
