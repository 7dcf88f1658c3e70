from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import timeit
from pathlib import Path
from typing import Any

import pytest
import torch

import machine
import rulescope
from rulescope.core import runtime, source_hash
from rulescope.core.errors import SpecError

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
import rulescope.core.runtime, rulescope.records
print(json.dumps("torch" in sys.modules))
"""
    assert run_python(code) is False


def test_single_threaded_sets_the_deterministic_mode_and_may_be_repeated() -> None:
    code = """
import json
from rulescope.core.runtime import runtime_identity, single_threaded
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
    "reported": [before["threads"], runtime_identity()["threads"]],
}))
"""
    assert run_python(code, OMP_NUM_THREADS="2") == {
        "threads": 1,
        "interop": 1,
        "deterministic": True,
        "fill": False,
        "reported": [2, 1],
    }


def test_single_threaded_survives_a_pool_that_has_already_started() -> None:
    code = """
import json, torch
torch.set_num_interop_threads(2)
from rulescope.core.runtime import single_threaded
single_threaded()
print(json.dumps(torch.get_num_threads()))
"""
    assert run_python(code) == 1


def test_runtime_identity_names_the_machine_but_not_its_owner() -> None:
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
from rulescope.core.runtime import source_identity
print(json.dumps(source_identity()))
"""


def git(folder: Path, *arguments: str) -> str:
    program = machine.require(machine.GIT, machine.find(machine.GIT))
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"]
    command = [program, "-C", str(folder), *identity, *arguments]
    return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return the folder of a copy of the package, reduced to what tells its identity."""
    folder = tmp_path / "top" / "src" / "rulescope"
    (folder / "core").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "source_hash.py", "runtime.py"):
        shutil.copy(SOURCE / "core" / name, folder / "core" / name)
    shutil.copy(SOURCE / "__init__.py", folder / "__init__.py")
    return folder


def commit(top: Path) -> str:
    git(top, "init", "--quiet")
    (top / ".gitignore").write_text("__pycache__\n")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "All")
    return git(top, "rev-parse", "HEAD")


def test_source_identity_outside_a_checkout(package: Path) -> None:
    expected = {"version": rulescope.__version__, "commit": None, "dirty": None}
    found = run_python(TELL, package.parent)
    assert re.fullmatch("[0-9a-f]{64}", found.pop("sha256"))
    assert found == expected


def test_an_edit_changes_the_source_identity_without_git_too(package: Path) -> None:
    first = run_python(TELL, package.parent)
    assert run_python(TELL, package.parent) == first
    with (package / "core" / "errors.py").open("a") as file:
        file.write("EDITED = True\n")
    second = run_python(TELL, package.parent)
    assert second["sha256"] != first["sha256"]
    (package / "rules").mkdir()
    (package / "rules" / "weights.npz").write_bytes(b"learned")
    assert run_python(TELL, package.parent)["sha256"] != second["sha256"]


def test_what_cannot_change_a_record_is_not_part_of_the_source_identity(package: Path) -> None:
    first = run_python(TELL, package.parent)
    for name in ("report/page.py", "cli/main.py", "render/style.py", "__pycache__/old.pyc"):
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text("shown = 1\n")
    assert run_python(TELL, package.parent) == first


def test_a_commit_that_changes_no_source_changes_no_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = runtime.source_identity()
    monkeypatch.setattr(runtime, "source_identity", lambda: source | {"commit": "0" * 40})
    assert runtime.program_identity() == {"sha256": source["sha256"]}
    monkeypatch.setattr(runtime, "source_identity", lambda: source | {"sha256": None})
    assert runtime.program_identity()["version"] == rulescope.__version__


EDITED_MEANWHILE = """
import json
from pathlib import Path
from rulescope.core import runtime

runtime.require_one_source()
for name in ("errors.py", "late.py"):
    with (Path(runtime.__file__).with_name(name)).open("a") as file:
        file.write("EDITED = True\\n")
runtime.require_one_source()  # errors.py was imported before: what runs is what was hashed
import rulescope.core.late
try:
    runtime.require_one_source()
except runtime.MixedSourceError as fault:
    print(json.dumps({"fault": str(fault)}))
"""


def test_a_module_imported_after_an_edit_makes_another_program(package: Path) -> None:
    (package / "core" / "late.py").write_text("")
    fault = run_python(EDITED_MEANWHILE, package.parent)["fault"]
    assert "edited while this process ran (late.py)" in fault


def test_hashing_the_source_takes_little_time() -> None:
    took = min(timeit.repeat(source_hash._program, number=1, repeat=5))
    assert took < 0.05


def test_source_identity_in_its_own_checkout(package: Path) -> None:
    top = package.parent.parent
    head = commit(top)
    (top / "results.txt").write_text("not source")
    expected = run_python(TELL, package.parent)
    assert (expected["commit"], expected["dirty"]) == (head, False)
    assert run_python(TELL, package.parent, GIT_DIR="/nowhere") == expected
    (package / "new.py").write_text("")
    edited = run_python(TELL, package.parent)
    assert (edited["commit"], edited["dirty"]) == (head, True)
    assert edited["sha256"] != expected["sha256"]


def test_source_identity_before_the_first_commit(package: Path) -> None:
    git(package.parent.parent, "init", "--quiet")
    assert run_python(TELL, package.parent)["commit"] is None


def test_source_identity_inside_somebody_elses_repository(package: Path) -> None:
    commit(package.parent.parent.parent)
    assert run_python(TELL, package.parent)["commit"] is None


def test_source_identity_without_git(package: Path) -> None:
    commit(package.parent.parent)
    assert run_python(TELL, package.parent, PATH="/nowhere")["commit"] is None


def test_the_devices_here_are_the_processor_and_every_accelerator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert runtime.list_devices() == ["cpu"]
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    for current in ("cuda", "cuda:0"):  # with and without its number
        found = torch.device(current)
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda found=found: found)
        assert runtime.list_devices() == ["cpu", "cuda", "cuda:0", "cuda:1"]
    runtime.require_device("cuda:1")
    with pytest.raises(SpecError, match="'cuda:2' is not available here; available: cpu, cuda, "):
        runtime.require_device("cuda:2")
