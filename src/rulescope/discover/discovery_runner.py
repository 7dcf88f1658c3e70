"""Running a discovery to a folder in the store, from its checkpoint if there is one."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rulescope.core import arrays, disk, runtime
from rulescope.core.errors import RecordError, SpecError
from rulescope.core.signals import Interrupts
from rulescope.core.structs import expanded
from rulescope.discover import rule_tensors
from rulescope.discover.discovery_spec import Discovery, validate_discovery
from rulescope.discover.meta_training import MetaStep, MetaTraining
from rulescope.records import Store, trackers
from rulescope.rules import disco_format, rule_weights

_log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 60.0
"""A killed discovery loses at most about this much work."""
RULE, LOG, MANIFEST = "rule.npz", "log.npz", "manifest.json"

Callback = Callable[[MetaTraining, MetaStep], None]
"""Called after every meta-step."""


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
    folder = store.root / "discoveries" / spec.id
    if (folder / MANIFEST).exists():
        read_manifest(folder)
        return folder
    spec = validate_discovery(spec)
    rule = _read_start(spec, start, device)
    store.require_writable()
    training = MetaTraining(spec, rule, device)
    runtime.require_one_source()
    identity = _identity(device)
    seconds = _resume(training, store, identity)
    started = saved = time.monotonic()

    def save_checkpoint() -> None:
        nonlocal saved
        saved = time.monotonic()
        spent = np.array(seconds + saved - started)
        state = training.save() | {"made/identity": np.array(identity), "made/seconds": spent}
        store.save_checkpoint(spec.id, state)

    with Interrupts() as interrupts:
        while not training.finished:
            meta_step = training.advance()
            if callback is not None:
                callback(training, meta_step)
            if interrupts.asked:
                save_checkpoint()
                raise KeyboardInterrupt
            if time.monotonic() - saved >= CHECKPOINT_SECONDS:
                save_checkpoint()
    _write(folder, training, seconds + time.monotonic() - started, store)
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


def _resume(training: MetaTraining, store: Store, identity: str) -> float:
    """Load the checkpoint, if there is one of this program and machine; return its seconds."""
    checkpoint = store.load_checkpoint(training.spec.id)
    if checkpoint is None:
        return 0.0
    if str(checkpoint.get("made/identity")) != identity:
        _log.warning(
            "discovery %s starts again: its checkpoint is of another program or machine",
            training.spec.id[:12],
        )
        return 0.0
    training.load(checkpoint)
    return float(checkpoint["made/seconds"])


def _write(folder: Path, training: MetaTraining, seconds: float, store: Store) -> None:
    """Write the folder of a finished discovery in one step."""
    runtime.require_one_source()
    files = {
        RULE: arrays.pack(rule_tensors.to_arrays(training.average)),
        LOG: arrays.pack(training.log_columns()),
    }
    manifest = {
        "id": training.spec.id,
        "spec": expanded(training.spec),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        "parameters": sum(array.numel() for array in training.rule.values()),
        "seconds": round(seconds, 1),
        "source": runtime.source_identity(),
        "runtime": runtime.runtime_identity(training.device),
    }
    files[MANIFEST] = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    with disk.writing(folder), store.temporary_folder(training.spec.id) as staged:
        for name, content in files.items():
            disk.write(staged / name, content)
        disk.make(folder.parent)
        staged.rename(folder)
        disk.sync(folder.parent)


def write_tensorboard(folder: Path, out: Path) -> Path:
    """Write the meta-curves of a finished discovery for TensorBoard; return their folder."""
    manifest, log = read_manifest(folder), arrays.read(folder / LOG)
    place = out / f"discovery-{folder.name[:12]}"
    steps = log.pop("meta_step")
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
