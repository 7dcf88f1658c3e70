"""A record: the immutable result of one run, and its encoding as three files.

Nothing here touches the disk. :func:`encode` turns a record into the content of its files and
:func:`decode` is the only way back, so that every record that is read has passed every check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from rulescope import run_spec as specs
from rulescope.core import arrays
from rulescope.core.arrays import ArrayFileError, Arrays, TooLargeError
from rulescope.core.errors import RecordError, SpecError
from rulescope.core.runtime import Identity
from rulescope.core.structs import expanded
from rulescope.records.migration import SCHEMA, upgrade
from rulescope.run_spec import RunSpec

MANIFEST, LOG, STATE = "manifest.json", "log.npz", "state.npz"
FILES = (MANIFEST, LOG, STATE)
MAX_MANIFEST = 16 << 20
"""The largest manifest in bytes; a typical one has three thousand."""

CARRIER_COLUMNS = ("cell_norm", "hidden_norm", "history_norm", "stored")
"""Log columns that describe carriers alone."""

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class DamageError(RecordError):
    """Content that differs from what was written; the message gives the cause, not the path."""


class RuleIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule weights that a run used."""

    name: str
    sha256: Sha256
    """Of the weights file; for ``random:SEED``, which has no file, the same as ``digest``."""
    digest: Sha256
    """Of the arrays (:func:`rulescope.core.arrays.digest`), independent of the file format."""


class SharedPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first iterations of a run, if another run executed them for both."""

    run: Sha256
    """The run that executed them."""
    iterations: Annotated[int, Meta(ge=1)]
    """The last shared iteration."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything in a record except its arrays."""

    schema: Literal[2] = SCHEMA
    id: Sha256
    spec: dict[str, Any]
    """The specification with every default written out, for people and for queries."""
    canonical: str
    """The exact text whose sha256 is ``id``."""
    source: Identity
    runtime: Identity
    rule: RuleIdentity | None
    """None for learners that have no rule weights."""
    parents: tuple[Sha256, ...] = ()
    """Runs whose records were used to make this one (donors)."""
    inherited: dict[Sha256, Sha256] = {}
    """Parent id to the digest of its terminal state."""
    started: str
    """UTC, as ISO 8601."""
    seconds: Annotated[float, Meta(ge=0.0)]
    """Time of all iterations, shared ones included."""
    science_hash: Sha256
    carriers_read: Literal["before", "after"] = "after"
    """Whether :data:`CARRIER_COLUMNS` of the log show carriers before or after the interventions of
    their iteration."""
    shared: SharedPart | None = None
    """Written only if there is a shared part, which has no effect on the results."""
    payload: dict[str, Sha256] = {}
    """sha256 of each array file; filled in when the record is written."""


@dataclass(frozen=True, eq=False)
class Record:
    """The result of one run: ``log`` columns [rows] or [rows, k], and terminal ``state`` arrays.

    All log columns have equally many rows. State arrays are named ``"carrier/array"``, such as
    ``"recurrent/h"``, and have any shape.
    """

    spec: RunSpec
    log: Arrays
    state: Arrays
    manifest: Manifest

    def __post_init__(self) -> None:
        """Check the shapes and names that every reader relies on."""
        for name, column in self.log.items():
            if column.ndim not in (1, 2):
                raise RecordError(f"log column {name!r}: shape {column.shape} is not [rows(, k)]")
        rows = {name: len(column) for name, column in self.log.items()}
        if len(set(rows.values())) > 1:
            raise RecordError(f"log columns differ in their number of rows: {rows}")
        for name in self.state:
            if not all(name.partition("/")):
                raise RecordError(f"state array {name!r} is not named 'carrier/array'")

    @classmethod
    def make(
        cls,
        spec: RunSpec,
        log: Arrays,
        state: Arrays,
        *,
        source: Identity,
        runtime: Identity,
        rule: RuleIdentity | None,
        started: datetime,
        seconds: float,
        inherited: Mapping[str, str] | None = None,
        shared: SharedPart | None = None,
    ) -> Record:
        """Return the record of a run of ``spec`` that has just ended.

        ``inherited`` maps the id of every donor to the digest of its terminal state.
        """
        manifest = Manifest(
            id=spec.id,
            spec=expanded(spec),
            canonical=specs.canonical(spec).decode(),
            source=source,
            runtime=runtime,
            rule=rule,
            parents=tuple(inherited or ()),
            inherited=dict(inherited or {}),
            started=started.astimezone(UTC).isoformat(timespec="seconds"),
            seconds=seconds,
            science_hash=science_hash(log, state),
            shared=shared,
        )
        return cls(spec, dict(log), dict(state), manifest)


class Logged(NamedTuple):
    """A record without its terminal state."""

    spec: RunSpec
    manifest: Manifest
    log: Arrays


def science_hash(log: Arrays, state: Arrays) -> str:
    """Return one sha256 over everything that was measured; times and hosts are not part of it."""
    named = {f"log/{name}": column for name, column in log.items()}
    return arrays.digest(named | {f"state/{name}": array for name, array in state.items()})


def agree(one: Record, other: Record) -> bool:
    """Return whether two records of a run have equal results.

    If one log shows carriers before the interventions and the other after them,
    :data:`CARRIER_COLUMNS` are not compared.
    """
    if one.manifest.science_hash == other.manifest.science_hash:
        return True
    if one.manifest.carriers_read == other.manifest.carriers_read:
        return False
    if not one.spec.interventions:  # before and after are equal
        return False
    return _hash_without_carriers(one) == _hash_without_carriers(other)


def _hash_without_carriers(record: Record) -> str:
    log = {name: column for name, column in record.log.items() if name not in CARRIER_COLUMNS}
    return science_hash(log, record.state)


def differing_facts(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the names of the facts in which two identities differ, sorted.

    Facts in only one of them are ignored: older versions recorded fewer. An equal sha256 is the
    same program, whatever its commit. The number of threads of other packages is ignored: it
    differs between a command and a worker of one machine, and explains no difference in results.
    """
    shared = (old.keys() & new.keys()) - {"native_threads"}
    names = [name for name in sorted(shared) if old[name] != new[name]]
    sha256 = old.get("sha256")
    if sha256 is not None and sha256 == new.get("sha256"):
        names = [name for name in names if name not in ("commit", "dirty")]
    return ["source" if name == "sha256" else name for name in names]


def encode(record: Record) -> dict[str, bytes]:
    """Return the content of the files of ``record``, after checking that it can be decoded."""
    try:
        files = {LOG: arrays.pack(record.log), STATE: arrays.pack(record.state)}
        payload = {name: _sha256(content) for name, content in files.items()}
        manifest = msgspec.structs.replace(record.manifest, payload=payload)
        files[MANIFEST] = _encode_manifest(_plain(manifest))
        decode(record.manifest.id, files)
    except (DamageError, ArrayFileError) as fault:
        raise RecordError(f"run {record.manifest.id}: not a valid record ({fault})") from None
    return files


def decode(run: str, files: Mapping[str, bytes], max_bytes: int | None = None) -> Record:
    """Return the record of ``run`` from the content of its files, after checking all of it.

    Damaged content raises :class:`DamageError`. Intact content that this version of Rulescope does
    not understand raises a plain :class:`RecordError`. No file may unpack to more than
    ``max_bytes``.
    """
    manifest = decode_manifest(run, files[MANIFEST])
    log, state = (_unpack(manifest, name, files[name], max_bytes) for name in (LOG, STATE))
    if science_hash(log, state) != manifest.science_hash:
        raise DamageError("the arrays do not hash to the science hash")
    return Record(_spec(manifest), log, state, manifest)


def decode_log(run: str, files: Mapping[str, bytes], max_bytes: int | None = None) -> Logged:
    """Return the record of ``run`` without its state, from the other two files."""
    manifest = decode_manifest(run, files[MANIFEST])
    log = _unpack(manifest, LOG, files[LOG], max_bytes)
    record = Record(_spec(manifest), log, {}, manifest)  # which checks the shapes
    return Logged(record.spec, manifest, log)


def decode_manifest(run: str, content: bytes) -> Manifest:
    """Return the verified manifest of ``run`` in the form of the current version."""
    manifest = _parse_manifest(content)
    if manifest.id != run:
        raise DamageError(f"{MANIFEST} is that of run {manifest.id}")
    if _sha256(manifest.canonical.encode()) != run:
        raise DamageError("the specification does not hash to the run's id")
    return manifest


def _plain(manifest: Manifest) -> dict[str, Any]:
    """Return a manifest as plain data; without ``shared`` if that is None, as in older records."""
    plain: dict[str, Any] = msgspec.to_builtins(manifest)
    if plain["shared"] is None:
        del plain["shared"]
    return plain


def _encode_manifest(plain: dict[str, Any]) -> bytes:
    """Return a manifest as indented JSON whose last field is a checksum of all others."""
    return msgspec.json.format(msgspec.json.encode(plain | {"checksum": _checksum(plain)})) + b"\n"


def _parse_manifest(content: bytes) -> Manifest:
    """Undo :func:`_encode_manifest`; check the checksum and every byte."""
    try:
        plain = msgspec.json.decode(content, type=dict[str, Any])
        checksum = plain.pop("checksum", None)
        intact = checksum == _checksum(plain) and content == _encode_manifest(plain)
    except (msgspec.MsgspecError, ValueError, RecursionError) as fault:
        raise DamageError(f"{MANIFEST} is not valid JSON ({fault})") from None
    if not intact:
        raise DamageError(f"{MANIFEST} does not match its own checksum")
    # Only intact content may claim another version.
    try:
        return msgspec.convert(upgrade(plain), Manifest)
    except (msgspec.ValidationError, LookupError, TypeError, ValueError) as fault:
        raise DamageError(f"{MANIFEST}: {fault}") from None


def _unpack(manifest: Manifest, name: str, content: bytes, max_bytes: int | None) -> dict[str, Any]:
    """Unpack an array file whose sha256 is the one in ``manifest``."""
    if _sha256(content) != manifest.payload.get(name):
        raise DamageError(f"{name} does not match its sha256")
    try:
        return arrays.unpack(content, max_bytes)
    except TooLargeError as fault:
        raise RecordError(f"{name}: {fault}") from None  # not damage
    except ArrayFileError as fault:
        raise DamageError(f"{name}: {fault}") from None


def _spec(manifest: Manifest) -> RunSpec:
    """Return the specification, after checking that it still has the same meaning."""
    try:
        spec = specs.decode(manifest.canonical, f"the specification of run {manifest.id}")
    except SpecError as fault:
        raise RecordError(f"{fault} (perhaps written by another version)") from None
    # The canonical text omits defaults, so a changed default would go unnoticed there; the expanded
    # form shows it. Fields that were added since are allowed.
    if spec.id != manifest.id or not _is_contained(manifest.spec, expanded(spec)):
        raise RecordError(f"run {manifest.id}: its specification has another meaning today")
    return spec


def _is_contained(then: Any, now: Any) -> bool:
    """Return whether ``now`` has every field of ``then`` with an equal value."""
    if isinstance(then, dict) and isinstance(now, dict):
        return all(key in now and _is_contained(then[key], now[key]) for key in then)
    if isinstance(then, list) and isinstance(now, list):
        return len(then) == len(now) and all(map(_is_contained, then, now))
    return bool(then == now)


def _checksum(plain: dict[str, Any]) -> str:
    return _sha256(msgspec.json.encode(plain, order="sorted"))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
