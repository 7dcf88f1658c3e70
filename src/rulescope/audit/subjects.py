"""From what a person types to what is audited: a name, a file, a discovery's folder, a plug-in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from rulescope.assays.subject import NULL_RULE, Subject, named
from rulescope.core import entry_points
from rulescope.core.errors import SpecError, WeightsError, nearest
from rulescope.learners.plugin_rule import pin_rule
from rulescope.render.result_files import stem
from rulescope.rules import disco_format, loading, registry
from rulescope.rules.embedded import EMBEDDED, RULE
from rulescope.spec.disco_config import SPROUT, Disco
from rulescope.spec.open_config import Open

DRAWN = ("random", "sprout-random")
OPEN = "open"
"""Each game's own OPEN rule."""


@dataclass(frozen=True)
class Audited:
    """What is audited, and how it is spoken of."""

    name: str
    """As in tables and pictures."""
    family: Literal["disco", "open", "plugin"]
    rule: str
    """As in a run's specification."""
    subject: Subject | None
    """None for OPEN, whose assays know their learner."""

    @property
    def folder(self) -> str:
        """Part of the name of its results folder: files of one name are told apart by content."""
        content = self.rule.removeprefix(loading.CONTENT)
        if content == self.rule or content.startswith(self.name.removeprefix(loading.CONTENT)):
            return stem(self.name)
        return f"{stem(self.name)}-{content[:8]}"

    @property
    def description(self) -> str:
        """Who learned under the rule, in words."""
        if self.subject is None:
            return Open().describe(self.name)
        return self.subject.learner.describe(self.name)


def find(text: str, weights: Path | None = None) -> tuple[Audited, Path | None]:
    """Return what ``text`` names, and the file its weights are in if not in the usual places."""
    offered = entry_points.list_names("rule")
    if text in registry.RULES or text in EMBEDDED or text == OPEN or _drawn(text):
        if text in offered:  # either could be meant, and the wrong profile would look right
            raise SpecError(f"{text!r} is also the name of a plug-in, which must change it")
        return _known(text), weights
    if text in offered:
        return Audited(text, "plugin", text, Subject(pin_rule(text), None)), weights
    if text.startswith(loading.CONTENT):
        return _read(loading.short(text), loading.load(text, weights)), weights
    path = Path(text)
    if path.exists():
        if weights is not None:
            raise SpecError(f"--weights: {text} is a file of weights itself; give one of the two")
        return _of_file(path / RULE if path.is_dir() else path)
    names = (*EMBEDDED, *registry.RULES, OPEN, *offered)
    raise WeightsError(
        f"no rule, file or plug-in is called {text!r}{nearest(text, names)}; a folder must be that "
        "of a discovery"
    )


def _drawn(text: str) -> bool:
    kind, colon, _ = text.partition(":")
    return bool(colon) and (kind in DRAWN or kind.startswith(("open-random", loading.FRESH)))


def _known(name: str) -> Audited:
    if name.startswith(OPEN):
        return Audited(name, "open", name, None)
    if name.startswith(loading.FRESH):
        return _sized(name, loading.load(name))
    return Audited(name, "disco", name, named(name))


def _of_file(path: Path) -> tuple[Audited, Path]:
    """Return the rule in a file; one that a discovery made is called by its folder."""
    weights = loading.read_any(path)
    label = path.resolve().parent.name[:12] if path.name == RULE else path.stem
    return _read(label, weights), path


def _read(label: str, weights: loading.RuleWeights) -> Audited:
    """Return a rule that is known by its content, driven by what goes with its size."""
    rule = f"{loading.CONTENT}{weights.content}"
    if loading.OPEN_KEY in weights.arrays:
        return Audited(label, "open", rule, None)
    return _sized(label, weights, rule)


def _sized(label: str, weights: loading.RuleWeights, rule: str | None = None) -> Audited:
    """Return a rule that is known by its sizes: the default learner has only room for one."""
    sizes, rule = disco_format.sizes_of(weights.arrays), rule or weights.name
    if sizes == disco_format.DISCO103:
        subject = Subject(replace(Disco(), rule=rule), NULL_RULE)
    else:
        subject = Subject(replace(SPROUT, rule=rule), loading.twin_of(sizes))
    return Audited(label, "disco", rule, subject)
