"""Running a discovery by evolution to a folder in the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rulescope.discover import discovery_runner
from rulescope.discover.evolution_spec import Evolution, validate_evolution
from rulescope.discover.evolution_training import EvolutionStep, EvolutionTraining
from rulescope.discover.fitness_workers import Evaluators
from rulescope.records import Store

Callback = Callable[[EvolutionTraining, EvolutionStep], None]
"""Called after every step: a lifetime of the warm start, or a generation."""


def find_or_run(
    spec: Evolution, store: Store, callback: Callback | None = None, workers: int = 1
) -> Path:
    """Return the folder of the discovery of ``spec``, which is run unless ``store`` has it.

    A run continues from its checkpoint in ``store``, to the bit; Ctrl-C leaves one. The result does
    not depend on the number of ``workers``.
    """
    found = discovery_runner.find(spec.id, store)
    if found is not None:
        return found
    spec = validate_evolution(spec)
    store.require_writable()
    with Evaluators(workers) as evaluators:
        return discovery_runner.run(spec, EvolutionTraining(spec, evaluators), store, callback)
