"""Running a discovery to a folder in the store, from its checkpoint if there is one."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from rulescope.core import arrays, disk, runtime
from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError, SpecError
from rulescope.core.signals import Interrupts
from rulescope.core.structs import expanded
from rulescope.discover import rule_tensors
from rulescope.discover.discovery_spec import Discovery, validate_discovery
from rulescope.discover.evolution_spec import Evolution
from rulescope.discover.meta_training import MetaStep, MetaTraining
from rulescope.records import Store, trackers
from rulescope.rules import disco_format, rule_weights

_log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 60.0
"""A killed discovery loses at most about this much work."""
RULE, LOG, MANIFEST = "rule.npz", "log.npz", "manifest.json"

Specification = Discovery | Evolution
Step = TypeVar("Step", covariant=True)
Made = TypeVar("Made", bound="Training[Any]")
Callback = Callable[[MetaTraining, MetaStep], None]
"""Called after every meta-step."""


class Training(Protocol[Step]):
    """A discovery that is made step by step; ``save`` and ``load`` continue to the bit."""

    device: str

    @property
    def finished(self) -> bool:
        """Whether the last step has been made."""

    def advance(self) -> Step:
        """Make one step."""

    def rule_arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return the resulting rule."""

    def log_columns(self) -> dict[str, NDArray[Any]]:
        """Return the measurements of the steps; the first column numbers them."""

    def facts(self) -> dict[str, Any]:
        """Return further entries of the manifest."""

    def save(self) -> dict[str, NDArray[Any]]:
        """Return everything that :meth:`load` needs."""

    def load(self, state: Arrays) -> None:
        """Continue from what :meth:`save` returned."""


def find_or_run(
    spec: Discovery,
    store: Store,
    callback: Callback | None = None,
    start: Path | None = None,
    device: str = "cpu",
) -> Path:
    """Return the folder of the discovery of ``spec``, which is run unless ``store`` has it.

    ``start`` is the file of the rule that ``spec.start`` names, if it names one. A run continues
    from its checkpoint in ``store``, to the bit; Ctrl-C leaves one.
    """
    found = find(spec.id, store)
    if found is not None:
        return found
    spec = validate_discovery(spec)
    rule = _read_start(spec, start, device)
    store.require_writable()
    return run(spec, MetaTraining(spec, rule, device), store, callback)


def find(identity: str, store: Store) -> Path | None:
    """Return the folder of the finished discovery with this id, after checking it, or None."""
    folder = store.root / "discoveries" / identity
    if not (folder / MANIFEST).exists():
        return None
    read_manifest(folder)
    return folder


def run(
    spec: Specification,
    training: Made,
    store: Store,
    callback: Callable[[Made, Any], None] | None = None,
) -> Path:
    """Run ``training`` of ``spec`` to its end, and return its folder in ``store``."""
    runtime.require_one_source()
    identity = _identity(training.device)
    seconds = _resume(spec.id, training, store, identity)
    started = saved = time.monotonic()

    def save_checkpoint() -> None:
        nonlocal saved
        saved = time.monotonic()
        spent = np.array(seconds + saved - started)
        state = training.save() | {"made/identity": np.array(identity), "made/seconds": spent}
        store.save_checkpoint(spec.id, state)

    with Interrupts() as interrupts:
        while not training.finished:
            step = training.advance()
            if callback is not None:
                callback(training, step)
            if interrupts.asked:
                save_checkpoint()
                raise KeyboardInterrupt
            if time.monotonic() - saved >= CHECKPOINT_SECONDS:
                save_checkpoint()
    folder = store.root / "discoveries" / spec.id
    _write(folder, spec, training, seconds + time.monotonic() - started, store)
    store.drop_checkpoint(spec.id)
    return folder


def _read_start(spec: Discovery, path: Path | None, device: str) -> rule_tensors.Rule | None:
    """Return the rule that ``spec`` starts from, or None for random weights."""
    if not spec.start:
        return None
    found = rule_weights.load(spec.start, path)
    if disco_format.sizes_of(found.arrays) != rule_tensors.all_sizes(spec.sizes):
        raise SpecError(f"{path}: the rule to start from has other sizes than the specification")
    return rule_tensors.from_arrays(found.arrays, device)


def _identity(device: str) -> str:
    """Return a hash of program, machine and device, which a resumed run must share."""
    shared = [runtime.program_identity(), runtime.runtime_identity(device)]
    return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()


def _resume(run: str, training: Training[Any], store: Store, identity: str) -> float:
    """Load the checkpoint, if there is one of this program and machine; return its seconds."""
    checkpoint = store.load_checkpoint(run)
    if checkpoint is None:
        return 0.0
    if str(checkpoint.get("made/identity")) != identity:
        _log.warning(
            "discovery %s starts again: its checkpoint is of another program or machine",
            run[:12],
        )
        return 0.0
    training.load(checkpoint)
    return float(checkpoint["made/seconds"])


def _write(
    folder: Path, spec: Specification, training: Training[Any], seconds: float, store: Store
) -> None:
    """Write the folder of a finished discovery in one step."""
    facts = training.facts()
    runtime.require_one_source()
    rule = training.rule_arrays()
    files = {
        RULE: arrays.pack(rule),
        LOG: arrays.pack(training.log_columns()),
    }
    manifest = {
        "id": spec.id,
        "spec": expanded(spec),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        "parameters": sum(array.size for array in rule.values()),
        "seconds": round(seconds, 1),
        **facts,
        "source": runtime.source_identity(),
        "runtime": runtime.runtime_identity(training.device),
    }
    files[MANIFEST] = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    with disk.writing(folder), store.temporary_folder(spec.id) as staged:
        for name, content in files.items():
            disk.write(staged / name, content)
        disk.make(folder.parent)
        staged.rename(folder)
        disk.sync(folder.parent)


def write_tensorboard(folder: Path, out: Path) -> Path:
    """Write the meta-curves of a finished discovery for TensorBoard; return their folder."""
    manifest, log = read_manifest(folder), arrays.read(folder / LOG)
    place = out / f"discovery-{folder.name[:12]}"
    steps = log.pop("meta_step" if "meta_step" in log else "step")
    rows = (
        (int(step), {name: float(column[i]) for name, column in log.items()})
        for i, step in enumerate(steps)
    )
    with disk.writing(place):
        place.mkdir(parents=True, exist_ok=True)
        trackers.event_file(place, rows, 0.0, manifest["seconds"] / max(float(steps[-1]), 1.0))
    return place


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a finished discovery, after checking every file against it."""
    path = folder / MANIFEST
    with disk.reading(path):
        content = path.read_bytes()
    try:
        manifest: dict[str, Any] = msgspec.json.decode(content, type=dict[str, Any])
        expected: dict[str, str] = msgspec.convert(manifest["files"], dict[str, str])
    except (msgspec.MsgspecError, KeyError) as fault:
        raise RecordError(f"{path}: not the manifest of a discovery ({fault})") from None
    for name in (RULE, LOG):
        with disk.reading(folder / name):
            found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != expected.get(name):
            raise RecordError(f"{folder / name}: does not match its sha256 in {MANIFEST}")
    return manifest
