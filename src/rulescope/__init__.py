"""Rulescope audits learned reinforcement-learning update rules.

It holds the rule's weights fixed, pins or replaces the state that the learner carries through a
run, and measures the effect. The names below are the public interface; each is imported when it is
first used, so that ``import rulescope`` is cheap::

    import rulescope as rs

    spec = rs.make_spec(rule="sprout", iterations=600, interventions=(rs.Pin(carrier="recurrent"),))
    record = rs.run(spec, "store")
    results = rs.run_assay("scale", rule="sprout", preset="smoke", store="store")
    profile = rs.audit_rule("sprout", preset="smoke", store="store")

One run
    ``RunSpec`` is a run as data, ``make_spec`` makes one from names, ``run`` turns it into a
    ``Record`` in a ``Store``.
Interventions on a carrier, as data
    ``Pin``, ``PinSteps``, ``Freeze``, ``Hold``, ``Reset``, ``Transplant``, ``RandomState``,
    ``Permute``, ``Ablate``, ``Placebo``.
Assays and audits
    ``ASSAYS``, ``find_assay`` and ``Assay``; ``run_assay`` returns ``Results``; ``audit_rule``
    returns a ``Profile``.
Rules
    ``load_rule`` returns the weights of a rule; ``UpdateRule`` is the base class of a new one.
Errors
    ``RulescopeError`` is the base class of errors that the user can correct.

The subpackages, from the bottom to the top; each imports only those above it in this list:

* ``core``: errors, seeds, arrays, files on disk, the hash of the source.
* ``stats``: estimates, intervals, paired contrasts, windows.
* ``envs``: the worlds, their configurations and their exact references.
* ``rules``: the weights of rules: released, embedded, random.
* ``learners``: Disco, OPEN, the baselines and their configurations; the base class of plug-ins.
* ``kit``: carriers of torch modules and optimisers, losses in JAX: for authors of rules.
* ``run_spec``: a run as data: world, learner, interventions, length, seed.
* ``render``: tables as text, the palette, the styles of arms and figures.
* ``records``: the record of a run, the store, its index and queries.
* ``lifetime``, ``interventions``, ``runner``, ``evaluation``, ``episode_stats``, ``shared_prefix``,
  ``run_packages``, ``intervention_conformance``: one run, step by step.
* ``engine``: many runs at once, on this machine or on a Ray cluster.
* ``assays``: one folder per question: its grid, analysis and figures.
* ``audit``: the assays of an audit, and the profile of a rule.
* ``mechanism``: views of the internal state of runs.
* ``discover``: rules made by meta-gradients or by evolution.
* ``numerics``: our numbers beside those of the original programs.
* ``claims``: the claims of the published audit, their verdicts, and what to run next.
* ``report``: results folders and the website of a store.
* ``api``: the functions above.
* ``cli``: the program ``rulescope``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# First, because it hashes the source: other modules are read from the disk from now on.
from rulescope.core import source_hash as source_hash
from rulescope.core.source_hash import __version__ as __version__

if TYPE_CHECKING:
    from rulescope.api import audit_rule, load_rule, run, run_assay
    from rulescope.assays import ASSAYS, Assay, Results
    from rulescope.assays import find as find_assay
    from rulescope.audit.lifetime_spec import make_spec
    from rulescope.audit.profile import Profile
    from rulescope.core.errors import RulescopeError
    from rulescope.learners.update_rule import UpdateRule
    from rulescope.records import Record, Store
    from rulescope.run_spec import (
        Ablate,
        Freeze,
        Hold,
        Permute,
        Pin,
        PinSteps,
        Placebo,
        RandomState,
        Reset,
        RunSpec,
        Transplant,
    )

__all__ = [
    "ASSAYS",
    "Ablate",
    "Assay",
    "Freeze",
    "Hold",
    "Permute",
    "Pin",
    "PinSteps",
    "Placebo",
    "Profile",
    "RandomState",
    "Record",
    "Reset",
    "Results",
    "RulescopeError",
    "RunSpec",
    "Store",
    "Transplant",
    "UpdateRule",
    "audit_rule",
    "find_assay",
    "load_rule",
    "make_spec",
    "run",
    "run_assay",
]

_PLACES = {
    "ASSAYS": "assays:ASSAYS",
    "Assay": "assays:Assay",
    "Profile": "audit.profile:Profile",
    "Record": "records:Record",
    "Results": "assays:Results",
    "RulescopeError": "core.errors:RulescopeError",
    "Store": "records:Store",
    "UpdateRule": "learners.update_rule:UpdateRule",
    "audit_rule": "api:audit_rule",
    "find_assay": "assays:find",
    "load_rule": "api:load_rule",
    "make_spec": "audit.lifetime_spec:make_spec",
    "run": "api:run",
    "run_assay": "api:run_assay",
}
"""Module and attribute of each public name; the others are in ``run_spec``."""


if not TYPE_CHECKING:  # so that a type checker knows the names above, and no others

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _PLACES.get(name, f"run_spec:{name}").split(":")
        value = getattr(import_module(f"rulescope.{module}"), attribute)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
