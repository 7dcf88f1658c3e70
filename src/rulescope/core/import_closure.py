"""The modules that a module imports inside its own distribution, found without importing any.

Imports are read from the syntax tree, those inside functions included. A module counts if it is of
the distribution of the entry module, or of no distribution at all (a file of the user's own). The
standard library, other distributions and this package do not: manifests hold their versions.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

_OUR_NAME = "rulescope"
_NAMED = re.compile(r"^([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*(?:\.\w+)*\Z")
"""A string such as ``package.module:Class``, by which registries and entry points name code."""
_SUFFIXES = (".py", ".so", ".pyd")


class Home(NamedTuple):
    """A top-level package (or the first one with code below a namespace), or a single module."""

    name: str
    path: Path
    """A folder, or the file of a single module."""


def find_home(module: str) -> Home:
    """Return the home of ``module``; raise ``ImportError`` with the reason if there is none.

    Nothing is imported except namespace packages. (A namespace package, which several
    distributions may share, has no code of its own: the first package below it with code counts.)
    """
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if module == "__main__" and loaded is not None:
        return Home(module, Path(loaded).resolve())
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError) as fault:
            raise ImportError(f"the module {name!r} cannot be found: {fault}") from None
        if spec is None:
            raise ImportError(f"there is no module {name!r}")
        if spec.origin is not None:
            path = Path(spec.origin)
            if not path.is_file():
                raise ImportError(f"{path} is not a file, so its source cannot be pinned")
            return Home(name, path.parent if spec.submodule_search_locations else path)
    raise ImportError(f"{module!r} is a namespace without code")


def find_closure(entry: str) -> dict[str, Path]:
    """Return the files of ``entry`` and of all it imports in its distribution, by module name.

    The packages that hold a module are imported before it, so their ``__init__`` count too. All
    modules of a package count where imports cannot be read: after an import of a computed name.
    """
    found: dict[str, Path] = {}
    waiting = [*_with_parents(entry)]
    find_home(entry)  # raises what is wrong with it
    while waiting:
        name = waiting.pop()
        if name in found or not _counts(name, entry):
            continue
        path = _find_file(name)
        if path is None:
            continue
        found[name] = path
        is_package = path.name == "__init__.py"
        for target in _imports(path, name if is_package else name.rpartition(".")[0]):
            waiting += _modules_below(name) if target is None else _with_parents(target)
    return found


def _counts(name: str, entry: str) -> bool:
    """Return whether ``name`` is in the distribution of ``entry``, or in none."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top == _OUR_NAME:
        return name == entry  # a world in the user's own __main__
    owners, own = _owners(top), _owners(entry.partition(".")[0])
    if len(owners) > 1:  # a namespace of several distributions
        return _home_or_none(name) == _home_or_none(entry)
    return not owners or owners == own


def _owners(top: str) -> frozenset[str]:
    return frozenset(_providers().get(top, ()))


@cache
def _providers() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _home_or_none(name: str) -> Home | None:
    try:
        return find_home(name)
    except ImportError:
        return None


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        yield ".".join(parts[:depth])


def _find_file(name: str) -> Path | None:
    """Return the file of a module, or None if there is none: an attribute, or a namespace."""
    home = _home_or_none(name)
    if home is None:
        return None
    if not home.path.is_dir():
        return home.path if name == home.name else None
    below = home.path.joinpath(*name.split(".")[home.name.count(".") + 1 :])
    if (below / "__init__.py").is_file():
        return below / "__init__.py"
    if name == home.name:
        return None
    plain = below.with_name(f"{below.name}.py")
    if plain.is_file():
        return plain
    compiled = sorted(below.parent.glob(f"{below.name}.*")) if below.parent.is_dir() else []
    return next((each for each in compiled if each.suffix in _SUFFIXES), None)


def _modules_below(name: str) -> list[str]:
    """Return all modules of the home of ``name``."""
    home = _home_or_none(name)
    if home is None or not home.path.is_dir():
        return []
    return [
        ".".join([home.name, *path.relative_to(home.path).with_suffix("").parts]).removesuffix(
            ".__init__"
        )
        for path in sorted(home.path.rglob("*.py"))
    ]


def _imports(path: Path, package: str) -> Iterator[str | None]:
    """Yield the names that a module may import; None if it imports a computed name.

    ``package`` is the one that relative imports start from. A name may be an attribute of a module.
    """
    if path.suffix != ".py":
        return
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # it cannot be imported
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                base = ".".join([*above, *([module] if module else [])])
                yield base
                for each in names:
                    yield from [f"{base}.{each.name}"] if each.name != "*" else _starred(base)
            case (
                ast.Call(func=ast.Name(id="import_module" | "__import__"))
                | ast.Call(func=ast.Attribute(attr="import_module"))
            ):
                yield from _dynamic(node, package)
            case ast.Constant(value=str(text)):
                named = _NAMED.match(text)
                if named:
                    yield named[1]
            case _:
                pass


def _starred(base: str) -> Iterator[str]:
    """Yield the modules directly in a package: its ``__all__`` may name any of them."""
    path = _find_file(base)
    if path is not None and path.name == "__init__.py":
        yield from (f"{base}.{each.stem}" for each in sorted(path.parent.glob("*.py")))


def _dynamic(call: ast.Call, package: str) -> Iterator[str | None]:
    """Yield the module of a call of ``import_module``; None if its name is computed."""
    match call.args:
        case [ast.Constant(value=str(text)), *_]:
            level = len(text) - len(text.lstrip("."))
            parts = package.split(".")
            above = parts[: len(parts) - level + 1] if level else []
            yield ".".join([*above, *filter(None, [text[level:]])])
        case _:
            yield None
