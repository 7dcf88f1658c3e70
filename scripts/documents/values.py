"""The ``value`` markers of pages, and their text.

========================================  ======================================================
``records``, ``assays``, ...              a fact about the repository: see :data:`FACTS`
``ours ASSAY KEY [PART] [HOW]``           our estimate: its value and interval, or a part of it
``published ASSAY KEY [PART] [HOW]``      the published one, likewise
``difference ASSAY KEY [HOW]``            ours minus the published one
``seeds ASSAY CELL below|from X``         how many lifetimes of a cell are below X, or not
``crossings ASSAY CELL X``                first and last iteration at which a lifetime is first at X
``agreement ASSAY``                       how many published values are contradicted, …
``runs ASSAY``, ``held ASSAY``            lifetimes of the published grid, and how many there are
``shared ASSAY``                          of these, how many other assays have too
``budget ASSAY``                          whose lifetimes ours are, how many and how long
``rule NAME parameters|size|sha256``      facts of a file of rule weights
``code-lines FILE``                       lines of code of a module of the package
``measured NAME [HOW]``                   a measured figure of ``docs/measured.json``
========================================  ======================================================

HOW is a number of decimals, ``.2``, a divisor, ``/1000``, or both. PART is ``value``, ``bounds``,
``n`` or ``count`` (a share as a number of lifetimes of n). ASSAY may name an agent:
``E1@reference``.
"""

from __future__ import annotations

import ast
import io
import math
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from documents.analyses import Source, printed
from documents.repository import Repository
from documents.spans import DocumentError
from rulescope.assays import ASSAYS
from rulescope.assays.plan import Plan
from rulescope.assays.results import Column
from rulescope.core.errors import nearest
from rulescope.envs.world_references import EPISODES
from rulescope.learners.disco_config import Conventions
from rulescope.render.tables import MINUS, cell, number
from rulescope.rules import released_rules
from rulescope.rules.embedded import EMBEDDED
from rulescope.rules.rule_weights import load
from rulescope.stats import Estimate

PARTS: dict[str, Callable[[Estimate, int], str]] = {
    "value": lambda one, digits: _grouped(one.value, digits),
    "bounds": lambda one, digits: f"[{_grouped(one.low, digits)}, {_grouped(one.high, digits)}]",
    "n": lambda one, _: f"{one.n}",
    "count": lambda one, _: f"{round(one.value * one.n)} of {one.n}",
}
"""Parts of an estimate."""

FACTS: dict[str, Callable[[Repository], str]] = {
    "records": lambda repository: f"{len(repository.analyses.records):,}",
    "assays": lambda _: f"{len(ASSAYS)}",
    "claims": lambda repository: repository.ledger.summary,
    "claims-published": lambda repository: repository.ledger.published_summary,
    "report-scripts": lambda repository: repository.static_size("*.js"),
    "report-style": lambda repository: repository.static_size("*.css"),
    "reference-episodes": lambda _: f"{EPISODES:,}",
    "conventions": lambda _: f"{len(msgspec.structs.fields(Conventions))}",
    "assays-begun": lambda repository: f"{len(repository.begun)}",
    "tables-published": lambda repository: f"{len(repository.outputs['tables'])}",
    "figures-published": lambda repository: f"{len(repository.outputs['figures'])}",
    "tables-drawn": lambda repository: f"{len(repository.made('tables'))}",
    "figures-drawn": lambda repository: f"{len(repository.made('figures'))}",
    "outputs-without-code": lambda repository: repository.listed(repository.without_code),
    "outputs-without-records": lambda repository: repository.listed(repository.without_records),
}
"""Facts that need no further words."""


def count_code_lines(source: str) -> int:
    """Return the lines of ``source`` that hold code: no blank lines, comments and docstrings."""
    tree, code = ast.parse(source), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            code.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(code)


NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
"""Kinds of tokens that are no code."""


class Values:
    """Fills the ``value`` markers of one page."""

    def __init__(self, repository: Repository, agent: str | None) -> None:
        self._repository = repository
        self._agent = agent
        self._kinds: dict[str, Callable[[Sequence[str]], str]] = {
            "ours": lambda words: self._estimate(words, self._repository.analyses.ours),
            "published": lambda words: self._estimate(words, printed),
            "difference": self._difference,
            "seeds": self._seeds,
            "crossings": self._crossings,
            "agreement": self._agreement,
            "runs": lambda words: f"{len(self._plan(words).runs):,}",
            "shared": self._shared,
            "budget": self._budget,
            "held": self._held,
            "rule": self._rule,
            "code-lines": self._code_lines,
            "measured": self._measured,
        }

    def __call__(self, text: str) -> str:
        """Return the text of a marker."""
        kind, *words = text.split()
        if kind in FACTS and not words:
            return FACTS[kind](self._repository)
        if kind not in self._kinds:
            raise DocumentError(f"value: no {kind!r}{nearest(kind, {*self._kinds, *FACTS})}")
        try:
            return self._kinds[kind](words)
        except (DocumentError, ValueError) as fault:
            raise DocumentError(f"value: {text}: {fault}") from fault

    def _code_lines(self, words: Sequence[str]) -> str:
        [name] = words
        path = self._repository.root / "src" / "rulescope" / name
        if not path.is_file():
            raise DocumentError(f"no module {name!r}")
        return f"{count_code_lines(path.read_text(encoding='utf-8'))}"

    def _source(self, word: str) -> Source:
        return Source.of(word, self._agent)

    def _plan(self, words: Sequence[str]) -> Plan:
        [assay] = words
        return self._repository.analyses.plan(self._source(assay))

    def _held(self, words: Sequence[str]) -> str:
        plan = self._plan(words)
        return f"{len(plan.present & plan.runs.keys()):,}"

    def _shared(self, words: Sequence[str]) -> str:
        own = self._plan(words)
        others = [self._plan([name]) for name in ASSAYS if name != own.assay.id]
        return f"{sum(any(run in plan.runs for plan in others) for run in own.runs):,}"

    def _budget(self, words: Sequence[str]) -> str:
        [assay] = words
        return self._repository.analyses.results(self._source(assay)).budget

    def _estimate(self, words: Sequence[str], look_up: Callable[[Source, str], Estimate]) -> str:
        assay, key, *how = words
        digits = _digits(how)
        parts = [word for word in how if not word.startswith((".", "/"))]
        one = _divided(look_up(self._source(assay), key), _divisor(how))
        if not parts:
            return cell(one, Column("", digits))
        [part] = parts
        if part not in PARTS:
            raise DocumentError(f"no part {part!r}{nearest(part, PARTS)}")
        return PARTS[part](one, digits)

    def _difference(self, words: Sequence[str]) -> str:
        assay, key, *how = words
        source = self._source(assay)
        ours = self._repository.analyses.ours(source, key)
        return number(ours.value - printed(source, key).value, _digits(how))

    def _seeds(self, words: Sequence[str]) -> str:
        assay, name, relation, limit = words
        every = self._repository.analyses.seeds(self._source(assay), name)
        below = sum(value < float(limit) for value in every)
        counts = {"below": below, "from": len(every) - below}
        if relation not in counts:
            raise DocumentError(f"no relation {relation!r}{nearest(relation, counts)}")
        return f"{counts[relation]}"

    def _crossings(self, words: Sequence[str]) -> str:
        assay, name, limit = words
        found = self._repository.analyses.crossings(self._source(assay), name, float(limit))
        if not found:
            raise DocumentError(f"no lifetime of {name!r} is ever at {limit}")
        return f"{min(found):,} and {max(found):,}"

    def _agreement(self, words: Sequence[str]) -> str:
        [assay] = words
        return self._repository.analyses.agreement(self._source(assay))

    def _rule(self, words: Sequence[str]) -> str:
        name, fact = words
        facts = _rule_facts(name)
        if fact not in facts:
            raise DocumentError(f"no fact {fact!r}{nearest(fact, facts)}")
        return facts[fact]

    def _measured(self, words: Sequence[str]) -> str:
        name, *how = words
        found = self._repository.measured.get(name)
        if isinstance(found, str):
            return found
        return _grouped(found / _divisor(how), _digits(how, default=0))


def _grouped(value: float, digits: int) -> str:
    """Return a number with commas between its thousands.

    >>> _grouped(-1413.2, 0), _grouped(0.25, 2)
    ('−1,413', '0.25')
    """
    if not math.isfinite(value):
        return number(value, digits)
    return f"{value:,.{digits}f}".replace("-", MINUS)


def _digits(words: Sequence[str], default: int = 3) -> int:
    """Return the decimals asked for, as in ``.2``."""
    return next((int(word[1:]) for word in words if word.startswith(".")), default)


def _divisor(words: Sequence[str]) -> float:
    """Return the divisor asked for, as in ``/1000``."""
    return next((float(word[1:]) for word in words if word.startswith("/")), 1.0)


def _divided(one: Estimate, divisor: float) -> Estimate:
    return replace(one, value=one.value / divisor, low=one.low / divisor, high=one.high / divisor)


def _rule_facts(name: str) -> dict[str, str]:
    """Return facts of a rule of the package or of a released one."""
    if name in EMBEDDED:
        path = EMBEDDED[name].path
        parameters, size = load(name).parameter_count, path.stat().st_size
        sha256 = EMBEDDED[name].sha256
    else:
        rule = released_rules.get(name)
        parameters, size, sha256 = rule.parameters, rule.size, rule.sha256
    return {
        "parameters": f"{parameters:,}",
        "size": f"{size / 1000:,.0f} kB",
        "sha256": f"{sha256[:8]}…",
    }
