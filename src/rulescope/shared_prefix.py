"""The beginning that runs have in common: they are bit-identical until something differs.

Nothing that acts after iteration t has a part in the first t iterations of a run. :func:`truncate`
removes it from the specification: a change of the world and interventions that come later, the
carriers kept and the policies evaluated at the end, and the length of the run unless the learner
has a schedule. Two runs whose truncated specifications are equal share these iterations, log
included.
"""

from __future__ import annotations

import hashlib
import json

import msgspec

from rulescope import run_spec
from rulescope.core import runtime
from rulescope.envs.world_config import Gymnasium, PluginWorld
from rulescope.learners.learner_config import Plugin
from rulescope.records.branch_checkpoints import Branch
from rulescope.run_spec import RunSpec


def can_share(spec: RunSpec) -> bool:
    """Return whether ``spec`` may start from the state of another run.

    A run with code of another package runs alone: that its saved state is complete is checked
    (``check_learner``, ``check_env``), but not known as it is for the code of this package.
    """
    foreign = isinstance(spec.learner, Plugin) or isinstance(
        spec.environment, PluginWorld | Gymnasium
    )
    return not foreign


def truncate(spec: RunSpec, iteration: int) -> RunSpec:
    """Return ``spec`` without all that has no effect on its first ``iteration`` iterations.

    A placebo stays: a run that is a check of interventions should not take its result from the run
    that it is compared with.
    """
    change, scheduled = spec.change, spec.learner.scheduled
    marks = tuple(mark for mark in spec.marks if mark <= iteration)
    # A marked state is part of the record, and has a step count if the world will change.
    pending = change is not None and change.first_effect > iteration and not marks
    return msgspec.structs.replace(
        spec,
        change=None if pending else change,
        interventions=tuple(i for i in spec.interventions if i.first_effect <= iteration),
        marks=marks,
        iterations=spec.iterations if scheduled else iteration,
        remainder=spec.remainder if scheduled else 0,
        keep=run_spec.KEPT,
        evaluation=None,
    )


def branch_of(spec: RunSpec, iteration: int) -> Branch:
    """Return the state of ``spec`` after ``iteration``, identified by what determines it.

    That is the truncated specification, and this program: the state that another version left is
    another branch.
    """
    program = json.dumps(runtime.program_identity(), sort_keys=True)
    text = f"{program}|{iteration}|{run_spec.canonical(truncate(spec, iteration)).decode()}"
    return Branch(iteration, hashlib.sha256(text.encode()).hexdigest())


def list_branch_points(spec: RunSpec) -> set[int]:
    """Return the iterations after which ``spec`` may differ from a run that was equal so far.

    The last iteration is never shared: a run may end with steps without learning.
    """
    effects = [item.first_effect for item in (*spec.interventions, spec.change) if item is not None]
    points = {first - 1 for first in (*effects, *spec.marks, spec.iterations)}
    return {point for point in points if spec.start < point < spec.iterations}
