"""The program as a whole: help, version, exit codes."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from rulescope import __version__
from rulescope.cli import main
from rulescope.core.errors import SpecError


def test_every_verb_explains_itself() -> None:
    for verb in ("audit", "life", "check", "weights"):
        result = CliRunner().invoke(main.app, [verb, "--help"])
        assert result.exit_code == 0
        assert len(result.stdout) > 200


def test_version() -> None:
    assert __version__ in CliRunner().invoke(main.app, ["--version"]).stdout


@pytest.mark.parametrize(
    ("fault", "code", "told"),
    [(SpecError("seed: no"), 2, "error: seed: no"), (KeyboardInterrupt(), 130, "interrupted; ")],
)
def test_faults_become_exit_codes(
    fault: BaseException,
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise fault

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(fail)
    monkeypatch.setattr(main, "app", app)
    monkeypatch.setattr("sys.argv", ["rulescope"])
    with pytest.raises(SystemExit) as stop:
        main.run()
    assert stop.value.code == code
    captured = capsys.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err
