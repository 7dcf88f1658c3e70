"""The version of this package, hashes of source files, and which were edited since."""

from __future__ import annotations

import ast
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rulescope.core.import_closure import find_closure, find_home

__version__ = "0.1.0"

SHOWS_ONLY = ("cli", "render", "report")
"""Folders of this package that only present results: they cannot change a record."""


class Version(NamedTuple):
    """One file as it was when it was hashed."""

    size: int
    modified: int
    """In nanoseconds."""
    checksum: int
    """Of the content: enough to distinguish an edit from a touch."""


class Snapshot(NamedTuple):
    """The files of one package at one moment."""

    sha256: str
    """Over all files, names included."""
    files: dict[str, Version]
    """By path."""

    def edited(self) -> set[str]:
        """Return the files whose content on the disk has changed since."""
        return {path for path, then in self.files.items() if not _same(path, then)}


def snapshot(home: Path, without: tuple[str, ...] = ()) -> Snapshot:
    """Hash the files of a package (or one module), without the folders ``without`` at its top.

    All files count, not only Python's: a rule may keep its weights beside its code. Caches, hidden
    files, backups of editors and the line ends of Python files do not.
    """
    total, versions = hashlib.sha256(), {}
    top = home.parent if home.is_file() else home
    files = [str(home)] if home.is_file() else sorted(_files(home, without), key=_as_posix)
    for path in files:
        content, version = _read(path)
        name = _as_posix(path[len(str(top)) + 1 :])
        total.update(f"{name}|{len(content)}|".encode())
        total.update(content)
        versions[path] = version
    return Snapshot(total.hexdigest(), versions)


def _program() -> Snapshot | None:
    """Return this package as it is on the disk now, or None where it is not a folder of files."""
    try:
        return snapshot(Path(__file__).resolve().parents[1], SHOWS_ONLY)
    except OSError:
        return None


@cache
def digest(module: str, home: Path) -> str:  # noqa: ARG001  # part of the key of the cache
    """Return one sha256 over the code that ``module`` of another package imports in its package.

    ``home``, where that package is found, distinguishes packages of one name.

    Counted are the modules of :func:`~rulescope.core.import_closure.find_closure`, each by its name
    and syntax tree: comments, formatting and docstrings do not count. So do all files beside them
    that are not Python's, by their bytes, because a rule may keep its weights there
    (:data:`NOT_DATA` excepted). Raises ``ImportError`` with the reason if there is no such module.

    Computed once per process, because the code is imported once too: after an edit, this process
    still runs the code that was hashed.
    """
    modules = find_closure(module)
    total = hashlib.sha256(b"syntax trees, 1|")

    def add(name: str, content: bytes) -> None:
        total.update(f"{name}|{len(content)}|".encode())
        total.update(content)

    for name, file in sorted(modules.items()):
        content = file.read_bytes()
        add(name, describe_code(content) if file.suffix == ".py" else content)
    for each in sorted({find_home(name) for name in modules}):
        beside = sorted(_files(each.path, ()), key=_as_posix) if each.path.is_dir() else []
        for path in (path for path in beside if not path.endswith(NOT_DATA)):
            inside = _as_posix(path[len(str(each.path)) + 1 :])
            add(f"{each.name}/{inside}", _read(path)[0])
    return total.hexdigest()


NOT_DATA = (".py", ".pyi", ".so", ".pyd", ".md", ".rst")
"""Endings of files in a package that are not its data: code, which counts only if it is imported,
and documentation."""


def describe_code(source: bytes) -> bytes:
    """Return Python ``source`` without comments, formatting and docstrings.

    It is a text of the syntax tree. Empty fields are left out, so that newer versions of Python,
    which add fields, write the same text. What cannot be parsed is returned as it is.

    >>> describe_code(b"x = 1  # one") == describe_code(b"x=(1)")
    True
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source.replace(b"\r\n", b"\n")
    parts: list[str] = []
    _describe(tree, parts.append)
    return "".join(parts).encode("utf-8", "surrogatepass")


def _describe(node: Any, write: Callable[[str], None]) -> None:
    if isinstance(node, ast.AST):
        write(type(node).__name__)
        write("(")
        for name in node._fields:
            value = getattr(node, name, None)
            # A context follows from the place of a name; the kind of a string from its spelling.
            if value is None or value == [] or name in ("ctx", "kind", "type_comment"):
                continue
            write(name)
            write("=")
            _describe(value, write)
        write(")")
    elif isinstance(node, list):
        write("[")
        for each in node:
            if not _is_text(each):
                _describe(each, write)
                write(",")
        write("]")
    else:
        write(repr(node))


def _is_text(node: Any) -> bool:
    """Return whether a statement is only a string, as a docstring is."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache
def package_digest(home: Path) -> str:
    """Return one sha256 over all files of another package, or over one module.

    Specifications of earlier versions hold it as their source.
    """
    return snapshot(home).sha256


def hash_module(module: str) -> str:
    """Return the source of ``module`` as specifications hold it; see :func:`digest`."""
    return digest(module, find_home(module).path)


def hash_whole_package(module: str) -> str:
    """Return the source of ``module`` as specifications of earlier versions hold it."""
    return package_digest(find_home(module).path)


def _same(path: str, then: Version) -> bool:
    """Return whether a file is unchanged; its content is read only if size or time changed."""
    try:
        about = os.stat(path)  # noqa: PTH116  # see _read
        known = (about.st_size, about.st_mtime_ns) == (then.size, then.modified)
        return known or _read(path)[1].checksum == then.checksum
    except OSError:
        return False


def _read(path: str) -> tuple[bytes, Version]:
    # Every process does this a few hundred times at its start: pathlib takes twice as long.
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        about, content = os.fstat(file.fileno()), file.read()
    if path.endswith(".py"):
        content = content.replace(b"\r\n", b"\n")
    return content, Version(about.st_size, about.st_mtime_ns, zlib.crc32(content))


def _files(home: Path, without: tuple[str, ...]) -> Iterator[str]:
    for folder, below, names in os.walk(home):
        left_out = without if folder == str(home) else ()
        below[:] = [name for name in below if _counts(name) and name not in left_out]
        for name in names:
            if _counts(name) and not name.endswith((".pyc", ".pyo", "~")):
                yield os.path.join(folder, name)  # noqa: PTH118


def _counts(name: str) -> bool:
    return name != "__pycache__" and not name.startswith(".")


def _as_posix(path: str) -> str:
    return path.replace(os.sep, "/")


PROGRAM = _program()
"""This package as it was when the process imported it."""
