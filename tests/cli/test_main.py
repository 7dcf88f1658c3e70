"""The program as a whole: help, version, exit codes."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from rulescope import __version__
from rulescope.cli import main
from rulescope.core.errors import SpecError

VERBS = pytest.mark.parametrize("verb", main.VERBS, ids=lambda verb: str(verb.name))
HEAVY = {"torch", "matplotlib", "duckdb", "ray", "tensorboardX", "wandb"}
"""Libraries that take long to import, and that no help needs."""
WITHOUT_ASSAYS = {"atlas", "verify", "discover", "mechanism", "check", "records", "weights"}
"""Verbs whose help is shown without the assays."""


def modules_after(*arguments: str) -> set[str]:
    """Return the modules that the program has imported by its end."""
    code = (
        "import sys, atexit; from rulescope.cli.main import run; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); run()"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@VERBS
def test_every_verb_explains_itself(verb: main.Verb) -> None:
    result = CliRunner().invoke(main.app, [verb.name, "--help"])
    assert result.exit_code == 0
    assert len(result.stdout) > 200


@VERBS
def test_the_table_of_verbs_has_the_first_line_of_their_help(verb: main.Verb) -> None:
    help_text = str(typer.main.get_command(verb.load()).help)
    assert verb.summary == help_text.partition("\n\n")[0].replace("\n", " ")
    assert verb.summary == help_text.splitlines()[0], "it is one line"


def test_the_help_lists_every_verb_and_imports_none() -> None:
    result = CliRunner().invoke(main.app, ["--help"], env={"COLUMNS": "200"})
    for verb in main.VERBS:
        assert verb.summary in result.stdout
    imported = modules_after("--help")
    assert not imported & {*HEAVY, "numpy", "msgspec"}
    own = {name for name in imported if name.startswith("rulescope.")}
    assert own == {
        "rulescope.cli",
        "rulescope.cli.main",
        "rulescope.core",
        "rulescope.core.errors",
        "rulescope.core.source_hash",
    }


@VERBS
def test_a_verb_imports_only_what_it_needs(verb: main.Verb) -> None:
    imported = modules_after(verb.name, "--help")
    assert not imported & HEAVY
    assert ("rulescope.assays" in imported) is (verb.name not in WITHOUT_ASSAYS)


def test_a_misspelt_verb_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(main.app, ["stauts"])
    assert result.exit_code == 2
    assert "Did you mean 'status'?" in result.stderr


def test_version() -> None:
    assert __version__ in CliRunner().invoke(main.app, ["--version"]).stdout


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [(SpecError("seed: no"), 2, "error: seed: no"), (KeyboardInterrupt(), 130, "interrupted; ")],
)
def test_faults_become_exit_codes(
    fault: BaseException,
    code: int,
    message: str,
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
    assert message in captured.err
    assert "Traceback" not in captured.err
