"""The program as it is called from a shell, in this process."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from rulescope.cli.main import app


def invoke(*arguments: str | Path, code: int = 0) -> Result:
    """Return what ``rulescope`` said to ``arguments``; it must end with ``code``."""
    result = CliRunner().invoke(app, [str(part) for part in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result
