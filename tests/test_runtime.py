from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rulescope
from rulescope import runtime

SOURCE = Path(rulescope.__file__).parent


def run_python(code: str, path: Path = SOURCE.parent, **environment: str) -> Any:
    """Run ``code`` in a fresh interpreter that finds the package in ``path``; return its JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(path), **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def test_importing_is_cheap() -> None:
    code = """
import json, sys
import rulescope.runtime, rulescope.records
print(json.dumps("torch" in sys.modules))
"""
    assert run_python(code) is False


def test_single_threaded_sets_the_deterministic_mode_and_may_be_repeated() -> None:
    code = """
import json
from rulescope.runtime import runtime_identity, single_threaded
import torch
before = runtime_identity()
single_threaded()
torch.ones(100, 100) @ torch.ones(100, 100)
single_threaded()
print(json.dumps({
    "threads": torch.get_num_threads(),
    "interop": torch.get_num_interop_threads(),
    "deterministic": torch.are_deterministic_algorithms_enabled(),
    "fill": torch.utils.deterministic.fill_uninitialized_memory,
    "told": [before["threads"], runtime_identity()["threads"]],
}))
"""
    assert run_python(code, OMP_NUM_THREADS="2") == {
        "threads": 1,
        "interop": 1,
        "deterministic": True,
        "fill": False,
        "told": [2, 1],
    }


def test_single_threaded_survives_a_pool_that_has_already_started() -> None:
    code = """
import json, torch
torch.set_num_interop_threads(2)
from rulescope.runtime import single_threaded
single_threaded()
print(json.dumps(torch.get_num_threads()))
"""
    assert run_python(code) == 1


def test_runtime_identity_tells_the_machine_but_not_whose() -> None:
    identity = runtime.runtime_identity()
    assert set(identity) == {
        "python", "numpy", "torch", "blas", "onednn", "cpu", "isa", "os", "threads", "device",
    }  # fmt: skip
    assert identity["device"] == "cpu"
    assert all(identity[key] for key in ("python", "numpy", "torch", "blas", "cpu", "isa", "os"))
    # (Words, not substrings: a host may well be called "linux".)
    words = {word for value in identity.values() for word in str(value).lower().split()}
    assert platform.node().lower() not in words
    assert os.environ.get("USER", "nobody").lower() not in words
    assert not any(word.startswith(os.sep) for word in words)


def test_identities_are_copies() -> None:
    runtime.source_identity()["version"] = "forged"
    runtime.runtime_identity()["cpu"] = "forged"
    assert runtime.source_identity()["version"] == rulescope.__version__
    assert runtime.runtime_identity()["cpu"] != "forged"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build", "mkl 2024.2-Product"),
        ("Build settings: BLAS_INFO=accelerate, BUILD_TYPE=Release", "accelerate"),
        ("nothing of the kind", None),
    ],
)
def test_blas_is_read_from_the_build_settings(config: str, expected: str | None) -> None:
    assert runtime._blas(config) == expected


TELL = """
import json
from rulescope.runtime import source_identity
print(json.dumps(source_identity()))
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return the folder of a copy of the package, reduced to what tells its identity."""
    folder = tmp_path / "top" / "src" / "rulescope"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "runtime.py"):
        shutil.copy(SOURCE / name, folder / name)
    return folder


def commit(top: Path) -> str:
    git(top, "init", "--quiet")
    (top / ".gitignore").write_text("__pycache__\n")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "All")
    return git(top, "rev-parse", "HEAD")


def test_source_identity_outside_a_checkout(package: Path) -> None:
    expected = {"version": rulescope.__version__, "commit": None, "dirty": None}
    assert run_python(TELL, package.parent) == expected


def test_source_identity_in_its_own_checkout(package: Path) -> None:
    top = package.parent.parent
    head = commit(top)
    (top / "results.txt").write_text("not source")
    expected = {"version": rulescope.__version__, "commit": head, "dirty": False}
    assert run_python(TELL, package.parent) == expected
    assert run_python(TELL, package.parent, GIT_DIR="/nowhere") == expected
    (package / "new.py").write_text("")
    assert run_python(TELL, package.parent) == expected | {"dirty": True}


def test_source_identity_before_the_first_commit(package: Path) -> None:
    git(package.parent.parent, "init", "--quiet")
    assert run_python(TELL, package.parent)["commit"] is None


def test_source_identity_inside_somebody_elses_repository(package: Path) -> None:
    commit(package.parent.parent.parent)
    assert run_python(TELL, package.parent)["commit"] is None


def test_source_identity_without_git(package: Path) -> None:
    commit(package.parent.parent)
    assert run_python(TELL, package.parent, PATH="/nowhere")["commit"] is None
