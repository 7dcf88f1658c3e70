"""The program ``rulescope``, called in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from rulescope.cli.main import app


def invoke(*arguments: str | Path, code: int = 0, text: str | None = None) -> Result:
    """Return the result of ``rulescope``, which must end with ``code``; ``text`` is its input.

    An error that the program would print in one line is raised.
    """
    words = [str(part) for part in arguments]
    result = CliRunner().invoke(app, words, catch_exceptions=False, input=text)
    assert result.exit_code == code, result.output
    return result


def invoke_json(*arguments: str | Path, code: int = 0) -> Any:
    """Return the JSON that ``rulescope ... --json`` prints."""
    return json.loads(invoke(*arguments, "--json", code=code).stdout)
