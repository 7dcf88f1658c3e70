"""Provenance of results: source, machine and numeric mode.

Two runs of one specification are guaranteed to be bit-identical only where ``runtime_identity`` is
equal and ``single_threaded`` has set the numeric mode of the process. No host name, user name or
path is recorded.

Torch is imported inside the functions, so that importing this module costs nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from rulescope.core import source_hash
from rulescope.core.errors import PassingError, SpecError
from rulescope.core.source_hash import __version__

Identity = dict[str, str | int | bool | None]
"""Facts as plain data, ready for JSON."""

_PACKAGE = Path(__file__).resolve().parents[1]


class MixedSourceError(PassingError):
    """The package was edited while this process ran, and some of it was imported afterwards."""


def source_identity() -> Identity:
    """Return ``version``, git ``commit``, ``dirty`` and the ``sha256`` of the package's files.

    Commit and dirty (has the package been edited since?) are None unless the package lies in its
    own checkout (``src/rulescope`` of a repository). The hash leaves out what cannot change a
    record (:data:`source_hash.SHOWS_ONLY`). Computed once per process, because the source is
    imported once too. Never fails.
    """
    return dict(_source())


def program_identity() -> Identity:
    """Return the facts of :func:`source_identity` that identify the program.

    That is the hash where it is known: a commit that changes no source is the same program.
    """
    source = source_identity()
    known = source.get("sha256")
    return source if known is None else {"sha256": known}


def program_name() -> str:
    """Return the version of the program and the beginning of its hash."""
    sha256 = source_identity().get("sha256")
    return __version__ if sha256 is None else f"{__version__} (source {str(sha256)[:12]})"


_UNEDITED: set[str] = set()
"""Files of modules that were imported while the package was unedited."""


def require_one_source() -> None:
    """Raise :class:`MixedSourceError` if modules were imported from files edited since the start.

    An edit does not change modules that are imported already, which the hash covers. A module
    imported after the edit belongs to another program. A module first seen after the edit may have
    been imported before it; that cannot be known, so it counts as edited.
    """
    program = source_hash.PROGRAM
    if program is None:
        return
    loaded = {str(getattr(m, "__file__", "")) for n, m in _modules() if n.startswith("rulescope.")}
    edited = program.edited()
    if not edited:
        _UNEDITED.update(loaded)
        return
    # Files are hashed under their real paths; a module may be imported through a link.
    mixed = sorted(edited & {str(Path(path).resolve()) for path in loaded - _UNEDITED})
    if mixed:
        names = ", ".join(Path(path).name for path in mixed)
        raise MixedSourceError(
            f"the source of rulescope was edited while this process ran ({names}), so a record "
            "would be the work of two programs; start the command again"
        )


def _modules() -> list[tuple[str, object]]:
    return list(sys.modules.items())  # a copy: another thread may be importing


def runtime_identity(device: str = "cpu") -> Identity:
    """Return everything besides the source that may affect results: versions, CPU, threads."""
    import torch

    return {**_machine(), "threads": torch.get_num_threads(), "device": _device(device)}


def list_devices() -> list[str]:
    """Return the devices on which torch computes here, such as ``["cpu", "cuda", "cuda:0"]``."""
    import torch

    if not torch.accelerator.is_available():
        return ["cpu"]
    kind = str(torch.accelerator.current_accelerator()).partition(":")[0]
    return ["cpu", kind, *(f"{kind}:{i}" for i in range(torch.accelerator.device_count()))]


def require_device(device: str) -> None:
    """Raise :class:`SpecError` unless torch computes on ``device`` here.

    Nothing is computed, so that the memory of a GPU is left to the workers.
    """
    if device != "cpu" and device not in (found := list_devices()):
        raise SpecError(
            f"--device: {device!r} is not available here; available: {', '.join(found)}"
        )


XLA_THREADS = "PJRT_NPROC"
"""Variable that JAX reads when it first computes: its number of threads, by default that of cores.
Its sums depend on it."""
_HEAP = 128 << 20
"""Bytes by which the heap grows at a time; untouched pages cost nothing."""


def single_threaded(device: str = "cpu") -> None:
    """Put this process into the deterministic mode: one thread, deterministic kernels only."""
    import torch
    import torch.utils.deterministic

    os.environ[XLA_THREADS] = "1"  # a rule or a world may compute in JAX
    if device.startswith("cuda"):
        # Without a fixed workspace cuBLAS may choose another order of summation at each call.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.allow_tf32 = False  # else convolutions round float32 to 10 bits
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as fault:
        reason = str(fault).splitlines()[0]
        raise SpecError(f"device {device!r} cannot be used here ({reason})") from None
    torch.set_num_threads(1)
    if torch.get_num_interop_threads() != 1:
        # Torch allows this once, before its first parallel work. Too late does no harm: the
        # pool between operators serves only features (fork, async) that are not used here.
        with contextlib.suppress(RuntimeError):
            torch.set_num_interop_threads(1)
    # Sets what ``use_deterministic_algorithms`` sets, without importing torch's compiler for it:
    # two seconds and 70 MB in every process.
    torch.set_deterministic_debug_mode("error")
    # Deterministic mode also fills every fresh buffer with NaN. That costs a pass over memory for
    # each allocation, and nothing here reads memory that it has not written.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    _reuse_memory()


def _reuse_memory() -> None:
    """Make glibc's allocator keep large blocks, and the kernel back its heap by huge pages.

    An update allocates and frees some 30 MB in pieces. Given back and asked for again, each page
    costs a fault and a clearing; reached through small pages, each costs a walk of the page table.
    Together that was a third of the time of an iteration. Elsewhere than on glibc and Linux this
    does nothing, and nowhere does it change a result.
    """
    trim_threshold, top_pad, mmap_threshold, use_huge_pages = -1, -2, -3, 14
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        # Some versions take no more than 32 MB here, and answer 0 to what they refuse.
        libc.mallopt(mmap_threshold, 1 << 30) or libc.mallopt(mmap_threshold, 1 << 25)
        libc.mallopt(trim_threshold, (1 << 31) - 1)
        libc.mallopt(top_pad, _HEAP)
        libc.malloc.restype = ctypes.c_void_p
        block = ctypes.c_void_p(libc.malloc(1 << 24))  # the heap grows for it by _HEAP, and stays
        libc.free(block)
        for line in Path("/proc/self/maps").read_text().splitlines():
            if line.endswith("[heap]"):
                first, last = (int(part, 16) for part in line.split()[0].split("-"))
                size = ctypes.c_size_t(last - first)
                libc.madvise(ctypes.c_void_p(first), size, use_huge_pages)


@cache
def _source() -> Identity:
    commit, dirty = None, None
    top = _git("rev-parse", "--show-toplevel")
    # An installed copy may lie inside another repository (a virtual environment in a
    # project folder): that repository's commit says nothing about this source.
    if top and Path(top).resolve() == _PACKAGE.parent.parent and _PACKAGE.parent.name == "src":
        commit = _git("rev-parse", "--verify", "HEAD")
    if commit:
        changes = _git("status", "--porcelain", "--", ".")
        dirty = None if changes is None else bool(changes)
    program = source_hash.PROGRAM
    return {
        "version": __version__,
        "commit": commit or None,
        "dirty": dirty,
        "sha256": None if program is None else program.sha256,
    }


def _git(*arguments: str) -> str | None:
    """Return the output of git run in the package's folder, or None if that fails."""
    # Inside a git hook, variables such as GIT_DIR point to another repository.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"  # only looking: never hold the index lock
    try:
        done = subprocess.run(
            ["git", "-C", str(_PACKAGE), *arguments],
            capture_output=True,
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace").strip()


@cache
def _machine() -> Identity:
    import numpy
    import torch

    config = torch.__config__.show()
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": numpy.__version__,
        "torch": str(torch.__version__),
        "blas": _blas(config),
        "onednn": _found(r"MKL-DNN v([\d.]+)", config),
        "cpu": _cpu_model(),
        "isa": torch.backends.cpu.get_cpu_capability(),
        "os": platform.platform(),
    }


def _blas(config: str) -> str | None:
    """Return the name and, where known, the version of the BLAS in torch's build ``config``.

    >>> _blas("  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 2024\\n")
    'mkl 2024.2-Product'
    >>> _blas("  - Build settings: BLAS_INFO=open, BUILD_TYPE=Release")
    'open'
    """
    mkl = _found(r"Math Kernel Library Version (\S+)", config)
    return f"mkl {mkl}" if mkl else _found(r"BLAS_INFO=(\w+)", config)


def _cpu_model() -> str:
    """Return the processor's own name, or at least its architecture."""
    if sys.platform == "darwin":
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.check_output(command, text=True, timeout=10).strip()
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(errors="replace")
        if model := _found(r"model name\s*:\s*(.+)", text):
            return model.strip()
    return platform.processor() or platform.machine()


def _device(device: str) -> str:
    """Return ``device`` by the name of its hardware: ``"cuda:1"`` says little by itself."""
    import torch

    if not device.startswith("cuda"):
        return device
    return f"cuda {torch.version.cuda}, {torch.cuda.get_device_name(device)}"


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match[1] if match else None
