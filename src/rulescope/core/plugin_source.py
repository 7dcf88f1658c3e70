"""Hashes of the code of other packages, which specifications of their rules and worlds hold."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from rulescope.core.import_closure import find_closure, find_home
from rulescope.core.source_hash import as_posix, find_files, read_file, snapshot


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
        beside = sorted(find_files(each.path), key=as_posix) if each.path.is_dir() else []
        for path in (path for path in beside if not path.endswith(NOT_DATA)):
            inside = as_posix(path[len(str(each.path)) + 1 :])
            add(f"{each.name}/{inside}", read_file(path)[0])
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
