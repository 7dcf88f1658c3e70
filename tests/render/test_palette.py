"""Every colour has one name, in one module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import rulescope
from rulescope.render import palette
from rulescope.render.arm_styles import ARMS
from rulescope.render.palette import hex_colour, luminance, readable, rgb

ROOT = Path(rulescope.__file__).parent
HEX = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")


def literals(source: str) -> list[str]:
    """Return every hexadecimal colour in the strings of a module, docstrings aside."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        ast.get_docstring(node, clean=False)
        for node in ast.walk(tree)
        if isinstance(node, documented)
    }
    return [
        found
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value not in docstrings
        for found in HEX.findall(node.value)
    ]


def test_no_other_module_has_a_colour_of_its_own() -> None:
    sample = '"""#ABCDEF"""\nx = f"fill:#0072B2"\ny = "#fff"'
    assert sorted(literals(sample)) == ["#0072B2", "#fff"]
    for path in sorted(ROOT.rglob("*.py")):
        if path.name != "palette.py":
            assert literals(path.read_text(encoding="utf-8")) == [], path


def test_no_colour_has_two_names() -> None:
    named = [
        colour
        for value in vars(palette).values()
        for colour in (value if isinstance(value, tuple) else (value,))
        if isinstance(colour, str) and HEX.fullmatch(colour)
    ]
    assert len(named) > 20
    assert sorted(named) == sorted({colour.upper() for colour in named})


def test_spare_colours_belong_to_no_known_arm() -> None:
    assert not set(palette.SPARE) & {style.colour for style in ARMS.values()}


def test_ink_is_as_dark_as_its_colour_or_darker() -> None:
    for style in ARMS.values():
        ink = readable(style.colour)
        assert luminance(rgb(ink)) <= palette.READABLE + 0.01
        assert luminance(rgb(ink)) <= luminance(rgb(style.colour)) + 1e-9
    assert hex_colour(rgb(palette.BLUE)) == palette.BLUE.lower()
