"""Rule weights as read-only arrays, from an untrusted file or from a seed.

The null rule of a rule is one of its sizes with random weights (:func:`null_rule_name`).

Nothing here unpickles. A file is read once and the same bytes are hashed and parsed, so a file that
is replaced in between cannot pass the check.
"""

from __future__ import annotations

import hashlib
import io
import math
import tokenize
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rulescope.core import arrays as files
from rulescope.core import seeds
from rulescope.core.errors import WeightsError
from rulescope.rules import (
    disco_format,
    drawn_rules,
    lpg_format,
    lpo_format,
    released_rules,
    weight_files,
)
from rulescope.rules.disco_format import DiscoSizes, shapes
from rulescope.rules.embedded import EMBEDDED, Embedded, of_content

MAX_BYTES = 64 << 20
"""Largest rule file read, packed or unpacked: twenty times Disco103."""

OPEN_LENGTHS = {3571: "large", 1211: "small"}
"""The two sizes of an OPEN optimiser, by the length of the weight vector."""
OPEN_KEY = "weights"
"""Name of the one array of an OPEN rule."""

CONTENT = "sha256:"
"""Prefix of the names of rules that are identified by their content."""
FRESH = "fresh-"
"""Prefix of the names of rules with the random weights before a discovery, of any sizes."""

_RANDOM_SCALE = 0.1
_RANDOM_OPEN = {"open-random": 1211, "open-random-large": 3571}
_RANDOM_OPEN_SCALE = 0.4

_PARSER_FAULTS = (
    ValueError,
    OSError,
    EOFError,
    MemoryError,
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
)
"""Errors of NumPy and zipfile on malformed headers, absurd shapes, encryption and so on."""


@dataclass(frozen=True, eq=False)
class RuleWeights:
    """The weights η of a rule. They never change, so the arrays are read-only.

    ``arrays`` maps a name to float32 values: the 42 arrays of :mod:`.disco_format` for a Disco
    rule, one vector of length 3571 or 1211 under ``"weights"`` for OPEN, those of
    :mod:`.lpg_format` for LPG and of :mod:`.lpo_format` for LPO. To use them in torch, copy with
    ``torch.tensor(array)``; ``torch.from_numpy`` warns about read-only memory.
    """

    name: str
    arrays: Mapping[str, NDArray[np.float32]]
    sha256: str
    """Hash of the file; for random weights, which have no file, it is ``content``."""
    content: str
    """Hash of the names, shapes and values of the arrays, independent of the file format."""

    def __post_init__(self) -> None:
        frozen = {name: _read_only(array) for name, array in self.arrays.items()}
        object.__setattr__(self, "arrays", MappingProxyType(frozen))

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be copied or sent to another process; the dictionary inside can.
        return RuleWeights, (self.name, dict(self.arrays), self.sha256, self.content)

    @property
    def parameter_count(self) -> int:
        """Number of weights."""
        return sum(array.size for array in self.arrays.values())


def _read_only(array: NDArray[np.float32]) -> NDArray[np.float32]:
    view = np.asarray(array, order="C").view()  # not ascontiguousarray: a scalar stays one
    view.flags.writeable = False
    return view


def load(name: str, explicit: Path | None = None, *, download: bool = True) -> RuleWeights:
    """Return the weights of an embedded or released rule, or random ones.

    ``random:SEED`` is a random Disco rule, ``open-random:SEED`` a small and
    ``open-random-large:SEED`` a large OPEN rule. ``sprout-random:SEED`` is a rule of Sprout's size
    as it is before any discovery, ``fresh-SIZES:SEED`` one of other sizes (see
    :func:`null_rule_name`). ``lpg-random:SEED``, ``ta-lpg-random:SEED`` and ``lpo-random:SEED`` are
    those of :mod:`.drawn_rules`. ``sha256:CONTENT`` is the rule in the file ``explicit``, which
    must have that content (see :func:`name_of`), or in the folder ``explicit`` under the name of
    its content (:func:`content_file`).

    The file of a released rule is searched for, and downloaded unless ``download`` is false, as
    :func:`~rulescope.rules.weight_files.ensure` says; ``explicit`` is the file or its folder.
    """
    kind = name.partition(":")[0]
    if kind == "random":
        return random_weights(_seed(name))
    if kind == "sprout-random":
        return _drawn(name, fresh(disco_format.SPROUT, _seed(name)))
    if kind.startswith(FRESH):
        return _drawn(name, fresh(_sizes(name), _seed(name)))
    if drawn_rules.is_drawn(name):
        return _drawn(name, drawn_rules.draw(name, _seed(name)))
    if kind in EMBEDDED:
        return _embedded(EMBEDDED[kind])
    if kind == "sha256":
        return _of_content(name, explicit)
    if kind in _RANDOM_OPEN:
        return _random_open(name, _RANDOM_OPEN[kind], _seed(name))
    rule = released_rules.get(name)
    path = weight_files.ensure(rule, explicit, download=download)
    weights = read(rule.architecture, path)
    if weights.sha256 != rule.sha256:
        raise WeightsError(f"{path}: changed while it was being read; try again")
    return replace(weights, name=name)


def read(architecture: released_rules.Architecture, path: Path) -> RuleWeights:
    """Read a rule file of the given architecture, registered or not."""
    return read_open(path) if architecture == "open" else _read_archive(architecture, path)


def read_disco(path: Path) -> RuleWeights:
    """Read any Disco rule: exactly the 42 keys, float32, finite, shapes that fit together."""
    return _read_archive("disco", path)


def _read_archive(architecture: released_rules.Architecture | None, path: Path) -> RuleWeights:
    """Read a rule that is an archive of arrays; without ``architecture``, of any kind."""
    content = _bytes(path)
    try:
        found = files.unpack(content, MAX_BYTES)
    except _PARSER_FAULTS as fault:  # ArrayFileError is a ValueError
        raise _refusal(path, _first_line(fault), architecture or "disco") from None
    kind = architecture or _architecture_of(found)
    problem = _FAULTS[kind](found)
    if problem:
        raise _refusal(path, problem, kind)
    return _from_file(path, content, found)


_PREFIXES: dict[str, released_rules.Architecture] = {
    lpg_format.PREFIX: "lpg",
    lpo_format.PREFIX: "lpo",
}
_FAULTS = {"disco": disco_format.fault, "lpg": lpg_format.fault, "lpo": lpo_format.fault}


def _architecture_of(arrays: files.Arrays) -> released_rules.Architecture:
    """Return the kind of rule that the names of ``arrays`` indicate."""
    first = min(arrays, default="")
    return next((kind for prefix, kind in _PREFIXES.items() if first.startswith(prefix)), "disco")


def read_open(path: Path) -> RuleWeights:
    """Read any OPEN rule: one float32 vector of length 3571 (large) or 1211 (small)."""
    content = _bytes(path)
    try:
        vector = np.load(io.BytesIO(content), allow_pickle=False)
    except _PARSER_FAULTS as fault:
        reason = "not a plain .npy file" if "pickle" in str(fault) else _first_line(fault)
        raise _refusal(path, reason, "open") from None
    problem = _open_fault(vector)
    if problem:
        raise _refusal(path, problem, "open")
    return _from_file(path, content, {OPEN_KEY: vector})


def _open_fault(vector: Any) -> str | None:
    if not isinstance(vector, np.ndarray):
        return "an archive of several arrays"
    if vector.dtype != np.dtype(np.float32):
        return f"holds {vector.dtype}, not float32"
    if vector.ndim != 1 or vector.size not in OPEN_LENGTHS:
        return f"has shape {vector.shape}, not (3571,) or (1211,)"
    if not np.isfinite(vector).all():
        return "holds values that are not finite"
    return None


def random_weights(seed: int) -> RuleWeights:
    """Return a rule of Disco103's shape whose weights are normal with deviation 0.1.

    One generator fills all 42 arrays in the order of their sorted keys, so the values depend on
    the seed alone.
    """
    rng = np.random.default_rng(seed)
    values = {
        key: (rng.standard_normal(shape) * _RANDOM_SCALE).astype(np.float32)
        for key, shape in disco_format.shapes().items()
    }
    return _drawn(f"random:{seed}", values)


def _drawn(name: str, values: Mapping[str, NDArray[np.float32]]) -> RuleWeights:
    """Return weights that have no file."""
    content = files.digest(values)
    return RuleWeights(name, values, content, content)


def name_of(path: Path) -> str:
    """Return the name of the rule in the file at ``path``, which is its content hash."""
    return f"{CONTENT}{read_any(path).content}"


def read_any(path: Path) -> RuleWeights:
    """Read a rule file of any kind: one array is OPEN's, the names in an archive tell its kind."""
    return read_open(path) if _bytes(path).startswith(b"\x93NUMPY") else _read_archive(None, path)


def short(name: str) -> str:
    """Return the printed name of a rule: a content hash is abbreviated.

    >>> short("sprout"), short("sha256:" + "0123456789abcdef" * 4)
    ('sprout', 'sha256:0123456789ab')
    """
    return name[: len(CONTENT) + 12] if name.startswith(CONTENT) else name


def null_rule_name(sizes: disco_format.DiscoSizes, seed: int = 0) -> str:
    """Return the name of a rule of these ``sizes`` with random weights.

    >>> null_rule_name(disco_format.SPROUT)
    'fresh-16-64-32-1-16-16-16-16-4-16-16-16-16-4:0'
    """
    return f"{FRESH}{'-'.join(map(str, sizes))}:{seed}"


def _sizes(name: str) -> disco_format.DiscoSizes:
    numbers = name.partition(":")[0].removeprefix(FRESH).split("-")
    wanted = len(disco_format.DiscoSizes())
    sizes = [int(text) for text in numbers if text.isascii() and text.isdigit() and len(text) < 5]
    if len(sizes) != wanted or len(numbers) != wanted or not all(sizes):
        raise WeightsError(f"{name!r}: a fresh rule needs {wanted} sizes, each from 1 to 9999")
    return disco_format.DiscoSizes(*sizes)


def _embedded(rule: Embedded) -> RuleWeights:
    weights = read(rule.architecture, rule.path)
    if weights.sha256 != rule.sha256:
        raise WeightsError(
            f"{rule.path}: not the rule of this package (sha256 {weights.sha256[:12]}, not "
            f"{rule.sha256[:12]}); install the package again"
        )
    return replace(weights, name=rule.name)


def content_file(name: str) -> str:
    """Return the file name of the rule ``sha256:CONTENT`` in a folder of several rules."""
    return f"{name.removeprefix(CONTENT)}.weights"


def _of_content(name: str, path: Path | None) -> RuleWeights:
    if path is not None and path.is_dir():
        inside = path / content_file(name)
        path = inside if inside.is_file() else None
    if path is None:
        shipped = of_content(name.removeprefix(CONTENT))
        if shipped is None:
            raise WeightsError(f"{name}: the rule of a file; name the file with --weights")
        return replace(_embedded(shipped), name=name)
    weights = read_any(path)
    held = f"{CONTENT}{weights.content}"
    if held != name:
        raise WeightsError(f"{path}: holds another rule ({short(held)}) than {name}")
    return replace(weights, name=name)


def _random_open(name: str, length: int, seed: int) -> RuleWeights:
    """Return an OPEN rule whose weights are normal with deviation 0.4."""
    draws = np.random.default_rng(seed).standard_normal(length)
    return _drawn(name, {OPEN_KEY: (draws * _RANDOM_OPEN_SCALE).astype(np.float32)})


def _seed(name: str) -> int:
    kind, _, text = name.partition(":")
    if not (text.isascii() and text.isdigit()):
        raise WeightsError(f"{name!r}: random weights need a whole number, such as {kind}:0")
    return int(text)


def _bytes(path: Path) -> bytes:
    """Return the bytes of a regular file of at most ``MAX_BYTES``."""
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "does not exist"
            raise WeightsError(f"{path}: {what}; name a file of rule weights")
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise WeightsError(
                f"{path}: {size:,} bytes, more than the {MAX_BYTES:,} any rule needs; "
                "name a file of rule weights"
            )
        return path.read_bytes()
    except OSError as fault:
        raise WeightsError(f"{path}: cannot be read ({fault.strerror})") from None


def _from_file(path: Path, content: bytes, values: Mapping[str, NDArray[Any]]) -> RuleWeights:
    sha256 = hashlib.sha256(content).hexdigest()
    return RuleWeights(path.stem, values, sha256, files.digest(values))


_ADVICE = {
    "disco": "a Disco rule is an npz of 42 float32 arrays",
    "open": "an OPEN rule is a npy of one float32 vector",
    "lpg": "an LPG rule is an npz of 12 float32 arrays",
    "lpo": "an LPO rule is an npz of two float32 matrices",
}


def _refusal(path: Path, problem: str, architecture: released_rules.Architecture) -> WeightsError:
    return WeightsError(
        f"{path}: {problem}; {_ADVICE[architecture]}. For a released rule, delete the file and run "
        "`rulescope weights fetch`"
    )


def _first_line(fault: BaseException) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0]


GATE, HEADS = "lstm/linear", tuple(f"lstm/linear_{i}" for i in range(1, 5))
GATE_STD, HEAD_STD = 1.0, 0.3
"""Deviations of the layer that reads the recurrent state, and of the output layers; other layers
have the inverse root of their inputs."""


def fresh(sizes: DiscoSizes, seed: int) -> dict[str, NDArray[np.float32]]:
    """Draw a rule of these ``sizes``: truncated normals, all biases zero."""
    return {name: _draw(name, shape, seed) for name, shape in shapes(sizes).items()}


def _draw(name: str, shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    layer, _, kind = name.rpartition("/")
    if kind == "b":
        return np.zeros(shape, np.float32)
    std = HEAD_STD if layer in HEADS else GATE_STD if layer == GATE else 1 / math.sqrt(shape[-2])
    stream = seeds.stream(seed, "rule", name)
    return seeds.truncated_normal(stream, shape, std).astype(np.float32)
