"""What an exact check needs, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Inputs:
    """Files that some checks need; a check that lacks one says so."""

    golden: Path | None = None
    """Folder of arrays of the original program. Default: those of the package."""
    weights: Path | None = None
    """File or folder of released weights. Default: the usual places, without a download."""
    store: Path | None = None
    """Store of records, which is only read."""


@dataclass(frozen=True)
class ExactCheck:
    """The result of one check."""

    sentence: str
    """What was computed, or what is missing."""
    measured: Mapping[str, float] = field(default_factory=dict)
    """By name, such as ``x:first-moment-error``; empty if the claim could not be checked. Some
    checks measure more than the predicate of their claim reads."""

    @property
    def checked(self) -> bool:
        """Whether anything was measured."""
        return bool(self.measured)


def cannot_check(need: str) -> ExactCheck:
    """Return the result of a check that lacks something."""
    return ExactCheck(f"cannot be checked here: needs {need}")
