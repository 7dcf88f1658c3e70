"""Files of rule weights: the places searched, in order, and the download if none has the file.

The order is: the path given by the caller, ``$RULESCOPE_WEIGHTS``, the user's cache,
``./weights``, ``../shared/weights``. The first file found is used. A damaged file is an error and
not skipped, so that one command never uses different weights in two places unnoticed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pooch  # type: ignore[import-untyped]

from rulescope.core.errors import WeightsError
from rulescope.rules import released_rules
from rulescope.rules.released_rules import Rule

VARIABLE = "RULESCOPE_WEIGHTS"
"""Environment variable that names a file of weights or a folder of them."""

SILENCE = 30.0
"""Seconds without any bytes after which a download fails."""
DEADLINE = 600.0
"""Seconds that a whole download may take: a slow server must not block a run forever."""

Progress = Callable[[int, int], None]
"""Called with the bytes received so far and the bytes expected."""


def cache_folder() -> Path:
    """Return the user's cache folder, the only place this package downloads to."""
    return Path(pooch.os_cache("rulescope"))


def cache_path(rule: Rule) -> Path:
    """Return the path of ``rule`` in the user's cache, whether or not it exists."""
    return cache_folder() / rule.file


def folders() -> list[Path]:
    """Return the folders searched when neither caller nor environment names one, in order."""
    places = [cache_folder()]
    for base in (Path(), *_checkout()):
        places += [base / "weights", base / ".." / "shared" / "weights"]
    return places


def _checkout() -> list[Path]:
    """Return the repository's root if this file lies in a source checkout, else nothing."""
    root = Path(__file__).resolve().parents[3]
    return [root] if (root / "pyproject.toml").is_file() else []


def find(rule: Rule, explicit: Path | None = None) -> Path | None:
    """Return the first file of ``rule``, its hash checked, or None if no place holds one.

    ``explicit`` is a file or a folder; it must hold the rule: there is no fallback to another
    copy.
    """
    if explicit is not None:
        path = _in_place(rule, explicit)
        if path is None:
            raise WeightsError(
                f"{explicit}: no weights of {rule.name} here; give the file {rule.basename} "
                "or a folder that holds it"
            )
        return verified(rule, path.resolve())
    return next((verified(rule, path) for path in copies(rule)), None)


def _in_place(rule: Rule, place: Path) -> Path | None:
    """Return ``place`` itself if it is a file, or the file of ``rule`` in it if it is a folder."""
    if not _exists(place):
        return None
    return within(rule, place) if place.is_dir() else place


def copies(rule: Rule) -> Iterator[Path]:
    """Yield every file of ``rule`` in the places searched, best first, hashes unchecked."""
    seen = set()
    for path in chain(_from_environment(rule), (within(rule, folder) for folder in folders())):
        if path is not None and (real := path.resolve()) not in seen:
            seen.add(real)
            yield real


def copies_in(rule: Rule, place: Path) -> Iterator[Path]:
    """Yield the file of ``rule`` at ``place``, a file or a folder, if there is one."""
    path = _in_place(rule, place.resolve())
    if path is not None and (path.name == rule.basename or not _anothers(rule, path)):
        yield path


def within(rule: Rule, folder: Path) -> Path | None:
    """Return the file of ``rule`` in ``folder``, with or without the architecture's sub-folder."""
    choices = (folder / rule.file, folder / rule.basename)
    return next((path for path in choices if _exists(path)), None)


def _from_environment(rule: Rule) -> Iterator[Path]:
    named = os.environ.get(VARIABLE)
    if not named:
        return
    if not _exists(place := Path(named)):
        raise WeightsError(f"${VARIABLE} names {place}, which does not exist; correct or unset it")
    yield from copies_in(rule, place)


def _anothers(rule: Rule, path: Path) -> bool:
    """Return whether a file is another rule's: one file cannot serve every rule."""
    names = {other.basename for other in released_rules.RULES.values()}
    return path.name in names or _owner(path) not in (None, rule)


def _owner(path: Path) -> Rule | None:
    """Return the released rule with these bytes, whatever the name of the file."""
    sha256 = _sha256(path)
    return next((rule for rule in released_rules.RULES.values() if rule.sha256 == sha256), None)


def _exists(path: Path) -> bool:
    """Return whether ``path`` exists; a lack of permission is an error."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as fault:
        raise WeightsError(f"{path}: cannot be accessed ({fault})") from None
    return True


def verified(rule: Rule, path: Path) -> Path:
    """Return ``path`` if its bytes are those of ``rule``, else raise with both hashes."""
    found = _sha256(path)
    if found != rule.sha256:
        raise WeightsError(
            f"{path}: not the released weights of {rule.name} (sha256 {found[:12]}…, expected "
            f"{rule.sha256[:12]}…); {_remedy(rule, path)}"
        )
    return path


def _remedy(rule: Rule, path: Path) -> str:
    """Return how to fix a wrong file; an intact file in the wrong place must not be deleted."""
    if owner := _owner(path):
        return f"these are the weights of {owner.name}; name the file {rule.basename} instead"
    command = f"`rulescope weights fetch {rule.name}`"
    if path.resolve() == cache_path(rule).resolve():
        return f"delete it, or replace it with {command}"
    return f"delete it, then get a good copy with {command}"


def _sha256(path: Path) -> str:
    if not path.is_file():
        raise WeightsError(f"{path}: is not a file; remove it, or name the weights file itself")
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as fault:
        raise WeightsError(f"{path}: cannot be read ({fault.strerror})") from None


def ensure(
    rule: Rule,
    explicit: Path | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> Path:
    """Return the checked file of ``rule``; download it if it is missing and that is allowed."""
    path = find(rule, explicit)
    if path is not None:
        return path
    if download:
        return fetch(rule, progress=progress)
    raise WeightsError(
        f"the weights of {rule.name} are not here; get them with "
        f"`rulescope weights fetch {rule.name}`.\n{_by_hand(rule)}"
    )


def fetch(rule: Rule, source: Path | None = None, progress: Progress | None = None) -> Path:
    """Store a checked copy of ``rule`` in the user's cache and return its path.

    An intact copy in the cache is kept and a damaged one is replaced. The copy comes from
    ``source``, a local file or folder, or else from the network. It gets its name only when it is
    complete and has the right hash; a failure leaves no files.
    """
    if source is not None:
        source = find(rule, source)
    downloader = partial(_copy, source) if source else _http(rule, progress)
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)  # its messages would mix with the output of the command
    try:
        with _no_empty_folders(cache_path(rule).parent):
            done = pooch.retrieve(
                rule.url, rule.sha256, rule.file, cache_folder(), downloader=downloader
            )
    # Every error of the download library is an OSError; a wrong hash is a ValueError.
    except (OSError, ValueError) as fault:
        raise WeightsError(
            f"the weights of {rule.name} could not be fetched: {_reason(fault)}.\n{_by_hand(rule)}"
        ) from None
    finally:
        logger.setLevel(level)
    return Path(done)


def _copy(source: Path, _url: str, output: Any, _pooch: Any) -> None:
    """Copy a local file instead of a download; pooch hashes and renames it in the same way."""
    shutil.copyfile(source, output)


def _http(rule: Rule, progress: Progress | None) -> pooch.HTTPDownloader:
    return pooch.HTTPDownloader(
        timeout=SILENCE, chunk_size=_Meter.CHUNK, progressbar=_Meter(rule.size, progress)
    )


class _Meter:
    """A progress bar for pooch that also stops a download that is too long or too slow."""

    CHUNK = 1 << 10
    total = 0  # set by pooch from the server's header, which may be wrong

    def __init__(self, expected: int, progress: Progress | None) -> None:
        self._expected, self._progress = expected, progress
        self._done, self._start = 0, time.monotonic()

    def update(self, count: int) -> None:
        self._done += count
        # pooch counts whole chunks, so the last may exceed the size.
        if self._done > self._expected + self.CHUNK:
            raise ValueError("the server sends more bytes than the file has")
        if time.monotonic() - self._start > DEADLINE:
            raise TimeoutError(f"not complete after {DEADLINE:.0f} seconds")
        if self._progress:
            self._progress(min(self._done, self._expected), self._expected)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        if self._progress:
            self._progress(self._expected, self._expected)


@contextmanager
def _no_empty_folders(folder: Path) -> Iterator[None]:
    """On failure, remove the folders that pooch made for ``folder``."""
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        yield
    except BaseException:
        for place in new:
            with suppress(OSError):
                place.rmdir()
        raise


def _reason(fault: Exception) -> str:
    """Return the cause in a few words; the library's own messages have several lines."""
    response = getattr(fault, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason}"
    if isinstance(fault, OSError) and fault.strerror:
        return fault.strerror + (f" ({fault.filename})" if fault.filename else "")
    kind = type(fault)
    if kind.__module__.startswith("requests"):
        waited = f"no answer for {SILENCE:.0f} seconds"
        return waited if "Timeout" in kind.__name__ else f"no connection ({kind.__name__})"
    if "does not match the known hash" in str(fault):
        return "the server sent other bytes than the released file (wrong sha256)"
    return str(fault)


def _by_hand(rule: Rule) -> str:
    """Return the places searched, and how to install the file without this program."""
    named = os.environ.get(VARIABLE)
    places = [*([Path(named)] if named else []), *folders()]
    looked = ", ".join(dict.fromkeys(str(place.resolve()) for place in places))
    return (
        f"  places searched: {looked}\n"
        f"  address: {rule.url}\n"
        f"  by hand: save that file as {cache_path(rule)},\n"
        f"  or set {VARIABLE} to it or to a folder that holds {rule.basename}"
    )
