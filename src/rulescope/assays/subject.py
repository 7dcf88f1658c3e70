"""The rule under audit: its names, the learner that it drives, its null rule and its history.

A subject is named by its rule, and by the carriers that count as its history where these are not
the learner's own: ``disco103``, ``disco103@averages``, ``ppo@moments``, ``a2c@moments+params``. The
options of a plug-in come before them: ``mine:alpha=2``, ``mine:alpha=2,beta=3@replay``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import asdict, replace

from rulescope.core import entry_points
from rulescope.core.disk import stem
from rulescope.core.errors import SpecError, WeightsError, nearest
from rulescope.learners import further_config
from rulescope.learners.baseline_config import VARIANTS as BASELINES
from rulescope.learners.baseline_config import Baseline
from rulescope.learners.disco_config import AGENTS, INTERFACES, SPROUT, VARIANTS, Disco, driven_by
from rulescope.learners.further_config import Dpo, Further, Lpg, Lpo
from rulescope.learners.further_options import name_further, with_options
from rulescope.learners.learner_base import HISTORY
from rulescope.learners.learner_config import Plugin
from rulescope.learners.open_config import Open
from rulescope.learners.plugin_options import name_options, parse_assignments, quote, split_options
from rulescope.learners.plugin_rule import has_null, pin_rule
from rulescope.render.display_names import subject_name
from rulescope.rules import disco_format, drawn_rules, released_rules, rule_weights
from rulescope.rules.embedded import EMBEDDED, RULE
from rulescope.rules.lpg_format import LpgSizes
from rulescope.rules.lpo_format import LpoSizes
from rulescope.run_spec import KEPT, Freeze, Intervention, Pin

NULL_RULE, SMALL_NULL_RULE = "random:0", "sprout-random:0"
"""Null rules of Disco103 and of Sprout: the same architecture with random weights."""
PLUGIN_NULL = "null:0"
"""Null rule of a plug-in that defines ``null``: what it returns for seed 0."""
OPEN = "open"
"""Each game's own OPEN rule."""
DRAWN = ("random", "sprout-random")
"""Names of rules whose weights are drawn from a seed, before the colon."""
FURTHER = further_config.VARIANTS
"""DPO, LPO and LPG, by name."""
Architecture = Literal["disco", "open", "plugin", "further", "baseline"]
EVOLVED = tuple(name for name, rule in EMBEDDED.items() if rule.architecture != "disco")
"""Rules of the package that drive LPO or LPG."""
AT, AND = "@", "+"
"""Between the name of a rule and the carriers of its history, and between these."""


SubjectLearner = Disco | Plugin | Baseline | Further
"""The learner of a subject that is no rule of OPEN."""


@dataclass(frozen=True)
class Subject:
    """A rule under audit."""

    learner: Open | SubjectLearner
    """The learner that the rule drives, with the rule's name in it; or a baseline."""
    null: str | None = None
    """Rule of the ``null`` arm; None if the rule has no weights that could be drawn at random."""
    label: str = ""
    """Name of a rule that is known by the content of its file."""
    own_rules: bool = False
    """Whether each game has an OPEN rule of its own."""
    chosen: tuple[str, ...] = ()
    """Carriers that count as its history, if not those that the learner declares."""

    @property
    def rule(self) -> str:
        """The rule as budgets name it, with the carriers of its history if they were chosen."""
        return self._with_history(OPEN if self.own_rules else self.driver)

    @property
    def name(self) -> str:
        """The rule as it is typed."""
        return self._with_history(self.label) if self.label else self.rule

    def _with_history(self, name: str) -> str:
        return f"{name}{AT}{AND.join(self.chosen)}" if self.chosen else name

    @property
    def driver(self) -> str:
        """The rule as specifications name it; of a baseline, its name on the command line."""
        learner = self.learner
        if isinstance(learner, Plugin):
            return name_options(learner.rule, learner.options)
        if isinstance(learner, Disco | Open):
            return learner.rule
        if isinstance(learner, Dpo | Lpo | Lpg):
            return name_further(learner)
        return next((name for name, each in BASELINES.items() if each == learner), learner.kind)

    @property
    def printed(self) -> str:
        """The rule as tables and figures print it."""
        return subject_name(self.name)

    @property
    def architecture(self) -> Architecture:
        """The kind of rule, which decides the learner that it drives."""
        if isinstance(self.learner, Disco):
            return "disco"
        if isinstance(self.learner, Plugin):
            return "plugin"
        if isinstance(self.learner, Dpo | Lpo | Lpg):
            return "further"
        return "open" if isinstance(self.learner, Open) else "baseline"

    @property
    def history(self) -> tuple[str, ...]:
        """The carriers that hold the rule's learning history."""
        return self.chosen or self.learner.history

    @property
    def _acted_on(self) -> tuple[str, ...]:
        """The carriers of its history, if they are others than ``recurrent``."""
        return () if self.history == (HISTORY,) else self.history

    @property
    def kept(self) -> tuple[str, ...]:
        """The carriers in the record of a donor."""
        return self._acted_on or KEPT

    def act_on_history(self, interventions: tuple[Intervention, ...]) -> tuple[Intervention, ...]:
        """Return ``interventions`` on ``recurrent`` as interventions on the subject's history.

        Another carrier than ``recurrent`` that is pinned is restored to its initial value: zero may
        mean something else in it.
        """
        if not self._acted_on:
            return interventions
        made: list[Intervention] = []
        for item in interventions:
            if item.carrier != HISTORY:
                made.append(item)
            elif isinstance(item, Pin):
                made += [Freeze(carrier=name, at=0) for name in self._acted_on]
            else:
                made += [replace(item, carrier=name) for name in self._acted_on]
        return tuple(made)

    @property
    def folder(self) -> str:
        """Part of the name of its results folder: content distinguishes files of one name."""
        content = self.rule.removeprefix(rule_weights.CONTENT)
        if content == self.rule or content.startswith(self.name.removeprefix(rule_weights.CONTENT)):
            return stem(self.name)
        return f"{stem(self.name)}-{content[:8]}"

    @property
    def description(self) -> str:
        """The learner under the rule, in words."""
        learner = self.learner
        if isinstance(learner, Open):
            return "PPO whose optimiser is the rule, in MinAtar"
        if isinstance(learner, Plugin):
            return f"The plug-in rule {self.driver}"
        if not isinstance(learner, Disco | Dpo | Lpo | Lpg):
            return f"The baseline {self.driver}"
        hidden = "×".join(str(size) for size in learner.agent.hidden)
        if not isinstance(learner, Disco):
            return (
                f"{learner.kind.upper()} learner of {self.name}: hidden layers {hidden}, learning "
                f"rate {learner.learning_rate:g}"
            )
        return (
            f"Disco learner under {self.name}: hidden layers {hidden}, learning rate "
            f"{learner.learning_rate:g}, batches of {learner.batch} trajectories"
        )

    @property
    def has_agents(self) -> bool:
        """Whether implementations of its learner differ in conventions: it comes as agents."""
        own = self.learner
        return isinstance(own, Disco) and own == replace(Disco(), rule=own.rule)

    def require_agents(self, option: str = "--agent") -> None:
        """Raise an error that names ``option`` unless the learner comes as several agents."""
        if not self.has_agents:
            raise SpecError(f"{option}: {self.rule!r} has a learner of its own, so no agents")

    def null_learner(self) -> Disco | Plugin | Lpo | Lpg:
        """Return the learner of the ``null`` arm."""
        if self.null is not None and isinstance(self.learner, Plugin):
            return replace(self.learner, null_seed=int(self.null.rpartition(":")[2]))
        if self.null is None or not isinstance(self.learner, Disco | Lpo | Lpg):
            why = "does not define null(seed)" if isinstance(self.learner, Plugin) else None
            raise SpecError(f"--arms: {self.rule!r} {why or 'has no weights'}, so no 'null' arm")
        return replace(self.learner, rule=self.null)


def make_subject(rule: str) -> Subject:
    """Return the subject of a rule by its name alone: no file is read.

    A rule of unknown size, such as ``sha256:...``, is taken for one of the size of Disco103.
    """
    rule, chosen = split_history(rule)
    if chosen:
        return with_history(make_subject(rule), chosen)
    if rule in BASELINES:
        return Subject(BASELINES[rule])
    plain, options = split_options(rule)
    if plain in FURTHER or plain in EVOLVED or drawn_rules.is_drawn(plain):
        return _with_options(_make_further(plain), options)
    if rule == OPEN:
        return Subject(Open(), own_rules=True)
    if rule.startswith(OPEN):
        return Subject(replace(Open(), rule=rule))
    own = Subject(driven_by(rule), NULL_RULE)
    return own if own.has_agents else Subject(own.learner, SMALL_NULL_RULE)


def split_history(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of a rule, and the carriers named after it.

    >>> split_history("ppo@moments"), split_history("disco103")
    (('ppo', ('moments',)), ('disco103', ()))
    """
    name, at, carriers = text.rpartition(AT)
    if not at or '"' in carriers:  # the last @ is in the value of an option
        return text, ()
    return name, tuple(carriers.split(AND))


def name_history(rule: str, carriers: Sequence[str]) -> str:
    """Return the name of the subject ``rule`` with ``carriers`` as its history."""
    if split_history(rule)[1]:
        raise SpecError(f"--history: {rule!r} names its history already")
    return f"{rule}{AT}{AND.join(carriers)}"


def name_with_options(rule: str, typed: Sequence[str]) -> str:
    """Return the name of the subject ``rule`` with options typed as ``NAME=VALUE``."""
    name, chosen = split_history(rule)
    if split_options(name)[1]:
        raise SpecError(f"--option: {rule!r} names its options already")
    given = parse_assignments(typed)
    named = f"{name}:{','.join(f'{key}={quote(value)}' for key, value in given.items())}"
    return name_history(named, chosen) if chosen else named


def with_history(subject: Subject, carriers: tuple[str, ...], where: str = "--history") -> Subject:
    """Return ``subject`` with other carriers as its history.

    An unknown one is an error that begins with ``where``.
    """
    valid = subject.learner.carrier_names
    if subject.architecture == "open":
        raise SpecError(f"{where}: an audit of OPEN acts on its carry, the carrier {HISTORY!r}")
    for name in carriers:
        if name not in valid:
            raise SpecError(
                f"{where}: {subject.name!r} has no carrier {name!r}{nearest(name, valid)}"
            )
        if carriers.count(name) > 1:
            raise SpecError(f"{where}: {name!r} is named twice")
    return replace_fields(subject, chosen=() if carriers == subject.learner.history else carriers)


DISCO103 = make_subject(Disco().rule)
"""The subject of the published assays."""


def find_subject(text: str, weights: Path | None = None) -> tuple[Subject, Path | None]:
    """Return the rule that ``text`` names, and the file of its weights if not in the usual places.

    ``text`` is the name of a rule, a baseline or an installed plug-in, a file of weights, or the
    folder of a discovery; ``@`` and carriers after it choose its history.
    """
    name, chosen = split_history(text)
    if chosen and not Path(text).exists():
        subject, found = find_subject(name, weights)
        return with_history(subject, chosen, repr(text)), found
    installed = entry_points.list_names("rule")
    plain, options = split_options(text)
    if options and not Path(text).exists() and _known_name(plain, installed):
        if plain in installed:
            return _of_plugin(plain, options), weights
        return _with_options(make_subject(plain), options), weights
    if options and Path(plain).exists() and not Path(text).exists():
        subject, found = find_subject(plain, weights)
        return _with_options(subject, options), found
    if text in OWN or _drawn(text):
        if text in installed:  # either could be meant, and the wrong profile would look right
            raise SpecError(f"{text!r} is also the name of a plug-in, which must change it")
        return _known(text), weights
    if text in installed:
        return _of_plugin(text, {}), weights
    if text.startswith(rule_weights.CONTENT):
        return _of_weights(rule_weights.short(text), rule_weights.load(text, weights)), weights
    path = Path(text)
    if path.exists():
        if weights is not None:
            raise SpecError(f"--weights: {text} is a file of weights itself; give one of the two")
        return _of_file(path / RULE if path.is_dir() else path)
    names = (*OWN, *installed)
    raise WeightsError(
        f"no rule, file or plug-in is called {text!r}{nearest(text, names)}; a folder must be that "
        "of a discovery"
    )


def locate_weights(rule: str | None, weights: Path | None) -> Path | None:
    """Return where the weights of ``rule`` are: the rule itself, if it is a file or a folder."""
    return weights if rule is None else find_subject(rule, weights)[1]


OWN = (*EMBEDDED, *released_rules.RULES, *BASELINES, *FURTHER, OPEN)
"""Names of rules and baselines of this package."""


def _known_name(text: str, installed: Sequence[str]) -> bool:
    return text in OWN or text in installed or _drawn(text)


def _of_plugin(name: str, options: Mapping[str, object]) -> Subject:
    """Return the installed rule ``name``; it has a null rule if its class can make one."""
    return Subject(pin_rule(name, options), PLUGIN_NULL if has_null(name) else None)


def _drawn(text: str) -> bool:
    if drawn_rules.is_drawn(text):
        return True
    kind, colon, _ = text.partition(":")
    return bool(colon) and (kind in DRAWN or kind.startswith(("open-random", rule_weights.FRESH)))


def _known(name: str) -> Subject:
    if name.startswith(rule_weights.FRESH):
        return _of_size(rule_weights.load(name), name)
    return make_subject(name)


def _of_file(path: Path) -> tuple[Subject, Path]:
    """Return the rule in a file; one that a discovery made has the name of its folder."""
    weights = rule_weights.read_any(path)
    label = path.resolve().parent.name[:12] if path.name == RULE else path.stem
    return _of_weights(label, weights), path


def _of_weights(label: str, weights: rule_weights.RuleWeights) -> Subject:
    """Return a rule that is known by its content, with the learner that fits its size."""
    rule = f"{rule_weights.CONTENT}{weights.content}"
    if rule_weights.OPEN_KEY in weights.arrays:
        return Subject(replace(Open(), rule=rule), label=label)
    sizes = drawn_rules.sizes_of(weights.arrays)
    return _of_size(weights, rule, label) if sizes is None else _of_drawn(rule, sizes, label)


def _make_further(name: str) -> Subject:
    """Return DPO, or LPO or LPG with drawn weights or those of the package, by its name."""
    learner = FURTHER.get(name)
    if isinstance(learner, Dpo):
        return Subject(learner)
    rule = name if learner is None else learner.rule
    sizes = _sizes_of_evolved(rule) if rule in EVOLVED else drawn_rules.read_sizes(rule)
    usual = _of_drawn(rule, sizes)
    return usual if learner is None else replace_fields(usual, learner=learner)


def _sizes_of_evolved(name: str) -> LpgSizes | LpoSizes:
    sizes = drawn_rules.sizes_of(rule_weights.load(name).arrays)
    assert sizes is not None, f"{name} is a rule of LPG or LPO"
    return sizes


def _with_options(subject: Subject, options: Mapping[str, Any]) -> Subject:
    """Return ``subject`` with options of its learner, as typed; only some subjects have any."""
    if not options:
        return subject
    if not isinstance(subject.learner, Dpo | Lpo | Lpg):
        raise SpecError(
            f"{subject.name!r} has no options: only DPO, LPO, LPG and plug-in rules have any"
        )
    learner = with_options(subject.learner, options)
    named = name_further(learner).removeprefix(name_further(subject.learner))
    label = subject.label and f"{subject.label}{named}"
    return replace_fields(subject, learner=learner, label=label)


def _of_drawn(rule: str, sizes: LpgSizes | LpoSizes, label: str = "") -> Subject:
    """Return a rule of LPO or LPG by its sizes."""
    null = _null_name(sizes, rule)
    if isinstance(sizes, LpoSizes):
        return Subject(Lpo(rule=rule), null, label)
    return Subject(Lpg(rule=rule, lifetime_inputs="raw" if sizes.aware else "none"), null, label)


def _null_name(sizes: LpgSizes | LpoSizes, rule: str) -> str:
    """Return a drawn rule of these ``sizes`` that is not ``rule`` itself."""
    name = drawn_rules.name_drawn(sizes)
    return name if name != rule else drawn_rules.name_drawn(sizes, 1)


def _of_size(weights: rule_weights.RuleWeights, rule: str, label: str = "") -> Subject:
    """Return a rule that is known by its sizes: the default learner has only room for one."""
    sizes = disco_format.sizes_of(weights.arrays)
    if sizes == disco_format.DISCO103:
        return Subject(replace(Disco(), rule=rule), NULL_RULE, label)
    return Subject(replace(SPROUT, rule=rule), rule_weights.null_rule_name(sizes), label)


def apply_agent(learner: Disco, agent: str, interface: str = "default") -> Disco:
    """Return ``learner`` with the conventions of ``agent``, unless that is empty.

    And with the value interface of that name, unless that is ``default``.
    """
    if agent:
        learner = replace(learner, conventions=AGENTS[agent])
    if interface != "default":
        learner = replace(learner, interface=INTERFACES[interface])
    return learner


def apply_variant(learner: SubjectLearner, variant: str) -> SubjectLearner:
    """Return ``learner`` with what distinguishes ``variant`` from the default learner."""
    if variant == "disco":
        return learner
    if not isinstance(learner, Disco):
        name = learner.rule if isinstance(learner, Plugin) else learner.kind
        raise SpecError(f"--arms: {variant!r} is a variant of Disco; {name!r} has none")
    usual, other = asdict(Disco()), asdict(VARIANTS[variant])
    return replace(learner, **{key: other[key] for key in other if other[key] != usual[key]})
