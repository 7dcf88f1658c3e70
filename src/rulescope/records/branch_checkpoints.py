"""Branch checkpoints: the state of a run from which other runs with the same beginning start.

    <root>/checkpoints/<key>-<iteration>.npz

A branch checkpoint is made by one run for others of its campaign. No result depends on it: if it is
missing or damaged, these runs start from their first iteration.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.core import disk
from rulescope.core.arrays import ArrayFileError, Arrays
from rulescope.core.errors import RecordError
from rulescope.records import checkpoint
from rulescope.records.store import Store

_log = logging.getLogger(__name__)

_NAME = re.compile(r"(?P<key>[0-9a-f]{64})-(?P<iteration>[1-9][0-9]{0,17})\.npz")
_USERS = "branch/users"
"""Name of the array that holds the ids of the runs that start from the branch checkpoint."""


class Branch(NamedTuple):
    """A state that several runs have in common."""

    iteration: int
    """The last common iteration."""
    key: str
    """The sha256 of all that determines the state, see ``rulescope.shared_prefix``."""

    @property
    def file_name(self) -> str:
        """The name of its checkpoint."""
        return f"{self.key}-{self.iteration}.npz"


def parse_name(path: Path) -> Branch | None:
    """Return the branch whose checkpoint is at ``path``; None if it is another file."""
    found = _NAME.fullmatch(path.name)
    return found and Branch(int(found["iteration"]), found["key"])


class BranchCheckpoints:
    """The branch checkpoints of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list_branches(self) -> set[Branch]:
        """Return all branches that have a checkpoint, intact or not."""
        found = map(parse_name, disk.listed(self._store.inside("checkpoints")))
        return {branch for branch in found if branch is not None}

    def save(self, branch: Branch, users: Iterable[str], state: Arrays) -> None:
        """Write (or replace) a checkpoint; ``users`` are the ids of the runs that need it."""
        named = {**state, _USERS: np.array(sorted(users), dtype="U64")}
        path = self._path(branch)
        try:
            content = checkpoint.encode(branch.key, named)
        except ArrayFileError as fault:
            raise RecordError(f"{path}: not a valid checkpoint ({fault})") from None
        self._store.replace_file(path, content)

    def read(self, branch: Branch) -> dict[str, NDArray[Any]]:
        """Return what :meth:`save` was given; damage or absence is an error."""
        return checkpoint.read(branch.key, self._path(branch))

    def load(self, branch: Branch) -> dict[str, NDArray[Any]] | None:
        """Return the state, or None if there is no intact one; a damaged file is removed."""
        try:
            state = self.read(branch)
        except FileNotFoundError:
            return None
        except (ArrayFileError, OSError) as fault:
            _log.warning("%s ignored: %s", self._path(branch), fault)
            self.drop(branch)
            return None
        del state[_USERS]
        return state

    def is_needed(self, branch: Branch) -> bool:
        """Return whether a run that has no record yet was to start from the checkpoint."""
        try:
            users = self.read(branch)[_USERS]
        except (ArrayFileError, OSError, KeyError):
            return False
        return any(user not in self._store for user in users.tolist())

    def drop(self, branch: Branch) -> None:
        """Remove a checkpoint, if there is one."""
        path = self._path(branch)
        with disk.writing(path):
            path.unlink(missing_ok=True)

    def drop_unneeded(self, branch: Branch) -> None:
        """Remove a checkpoint from which no run will start any more."""
        if not self.is_needed(branch):
            self.drop(branch)

    def _path(self, branch: Branch) -> Path:
        return self._store.inside("checkpoints") / branch.file_name
