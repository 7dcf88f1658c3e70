import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rulescope.cli.weights import app
from rulescope.core.errors import WeightsError
from rulescope.rules import released_rules, weight_files
from rulescope.rules.released_rules import Rule


def npy(value: float) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.full(1211, value, np.float32))
    return stream.getvalue()


GOOD = {"tiny-a": npy(1.0), "tiny-b": npy(2.0)}
RULES = {
    name: Rule(
        name=name,
        architecture="open",
        file=f"open/{name}_OPEN.npy",
        url=f"http://127.0.0.1:9/{name}_OPEN.npy",  # nothing listens on the discard port
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        parameters=1211,
        description="a rule for tests",
    )
    for name, content in GOOD.items()
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Register two small rules, neither of which is here, and return the folder ./weights/open."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv(weight_files.VARIABLE, raising=False)
    monkeypatch.setattr(weight_files, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(weight_files, "_checkout", list)
    monkeypatch.setattr(released_rules, "RULES", RULES)
    return project / "weights" / "open"


def put(folder: Path, name: str, content: bytes | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RULES[name].basename
    path.write_bytes(GOOD[name] if content is None else content)
    return path


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def data(*arguments: str | Path, code: int = 0) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def error(*arguments: str | Path) -> str:
    """Return the message of the WeightsError that the main program would print."""
    result = run(*arguments)
    assert isinstance(result.exception, WeightsError), result.output
    assert result.stdout == ""
    return str(result.exception)


# --- list ---------------------------------------------------------------------------------------


def test_list_shows_the_paths(place: Path) -> None:
    path = put(place, "tiny-a")
    result = run("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["name", "architecture", "parameters", "size", "licence", "path"]
    assert lines[1].split() == ["tiny-a", "open", "1,211", "4,972", "B", "Apache-2.0", str(path)]
    assert lines[2].rstrip().endswith("missing")
    assert "rulescope weights fetch" in lines[-1]


def test_list_as_json(place: Path) -> None:
    path = put(place, "tiny-a")
    here, missing = data("list")
    assert (here["name"], here["path"], here["problem"]) == ("tiny-a", str(path), None)
    assert (here["sha256"], here["licence"]) == (RULES["tiny-a"].sha256, "Apache-2.0")
    assert (missing["name"], missing["path"], missing["problem"]) == ("tiny-b", None, None)


def test_list_shows_a_damaged_file_and_continues(place: Path) -> None:
    put(place, "tiny-a", b"damaged")
    put(place, "tiny-b")
    damaged, good = data("list")
    assert "not the released weights" in damaged["problem"]
    assert good["problem"] is None
    assert "not the released weights" in run("list").stdout


def test_list_from_a_folder_searches_only_there(place: Path, tmp_path: Path) -> None:
    put(place, "tiny-a")
    other = put(tmp_path / "other", "tiny-b")
    assert [row["path"] for row in data("list", "--from", tmp_path / "other")] == [None, str(other)]


# --- fetch --------------------------------------------------------------------------------------


def test_fetch_from_a_local_folder(place: Path, tmp_path: Path) -> None:
    put(place, "tiny-a")
    put(place, "tiny-b")
    result = run("fetch", "--all", "--from", place)
    cached = [tmp_path / "cache" / rule.file for rule in RULES.values()]
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [f"tiny-a: {cached[0]}", f"tiny-b: {cached[1]}"]
    assert [path.read_bytes() for path in cached] == list(GOOD.values())
    assert [row["path"] for row in data("fetch", "--all")] == [str(path) for path in cached]


def test_fetch_without_a_network_is_one_error(tmp_path: Path) -> None:
    message = error("fetch", "tiny-a")
    assert "could not be fetched: no connection" in message
    assert RULES["tiny-a"].url in message
    assert not (tmp_path / "cache").exists()


def test_fetch_needs_names_or_all() -> None:
    assert "--all; valid: tiny-a, tiny-b" in error("fetch")


def test_fetch_checks_all_names_first(place: Path, tmp_path: Path) -> None:
    put(place, "tiny-a")
    assert "no rule is called 'tiny-x'" in error("fetch", "tiny-a", "tiny-x", "--from", place)
    assert not (tmp_path / "cache").exists()


# --- path ---------------------------------------------------------------------------------------


def test_path_prints_just_the_path(place: Path) -> None:
    path = put(place, "tiny-a")
    assert run("path", "tiny-a").stdout == f"{path}\n"
    assert data("path", "tiny-a")["path"] == str(path)
    assert run("path", "tiny-a", "--from", path).stdout == f"{path}\n"


def test_path_of_missing_weights_names_the_command_that_downloads_them() -> None:
    message = error("path", "tiny-a")
    assert message.startswith("the weights of tiny-a are not here")
    assert "RULESCOPE_WEIGHTS" in message


def test_path_of_an_unknown_or_damaged_rule(place: Path) -> None:
    assert "nearest: 'tiny-a'" in error("path", "tiny-aa")
    put(place, "tiny-a", b"damaged")
    assert "not the released weights of tiny-a" in error("path", "tiny-a")


# --- verify -------------------------------------------------------------------------------------


def test_verify_skips_missing_weights_unless_they_are_named(place: Path) -> None:
    assert "no weights found" in run("verify").stdout
    path = put(place, "tiny-a")
    assert data("verify") == [{"name": "tiny-a", "path": str(path), "problem": None}]
    (row,) = data("verify", "tiny-b", code=1)
    assert "fetch tiny-b" in row["problem"]


def test_verify_checks_every_copy(place: Path, tmp_path: Path) -> None:
    good = put(tmp_path / "cache", "tiny-a")
    bad = put(place, "tiny-a", b"damaged")
    rows = data("verify", code=1)
    assert [row["path"] for row in rows] == [str(good), str(bad)]
    assert [row["problem"] is None for row in rows] == [True, False]
    result = run("verify")
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ok", "WRONG"]


def test_verify_checks_the_structure_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may have the hash that was registered and yet not be a rule."""
    content = b"registered by mistake"
    rule = Rule(**{**vars(RULES["tiny-a"]), "sha256": hashlib.sha256(content).hexdigest()})
    monkeypatch.setattr(released_rules, "RULES", {"tiny-a": rule})
    put(place, "tiny-a", content)
    (row,) = data("verify", code=1)
    assert "not a plain .npy file" in row["problem"]


def test_verify_identifies_a_renamed_file_by_its_bytes(tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.npy"
    renamed.write_bytes(GOOD["tiny-b"])
    assert data("verify", "--from", renamed) == [
        {"name": "tiny-b", "path": str(renamed), "problem": None}
    ]


def test_every_command_has_help_and_refuses_a_path_that_is_not_there(tmp_path: Path) -> None:
    for command in (("list",), ("fetch", "tiny-a"), ("path", "tiny-a"), ("verify",)):
        assert "--from" in run(command[0], "--help").stdout
        assert run(*command, "--from", tmp_path / "nowhere").exit_code == 2
