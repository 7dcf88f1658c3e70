"""Migration of manifests of older versions, in memory only; files are never rewritten.

A change of the manifest's form increments ``SCHEMA`` and adds one function to ``MIGRATIONS``, from
the previous form to the new one. ``tests/records/fixtures`` keeps a record of every version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from rulescope.core.errors import RecordError

SCHEMA: Literal[2] = 2
"""The version that is written."""

Plain = dict[str, Any]
"""A manifest as plain data, without its checksum."""


def _carriers_read_before(plain: Plain) -> Plain:
    """Version 1 logged the norms of carriers as they were before an intervention replaced them."""
    return plain | {"carriers_read": "before"}


MIGRATIONS: Mapping[int, Callable[[Plain], Plain]] = {1: _carriers_read_before}
"""From version n to n + 1, by n: pure functions, which need not set ``schema`` themselves."""


class NewerError(RecordError):
    """A record that a newer version of rulescope wrote."""


def upgrade(plain: Plain) -> Plain:
    """Return a manifest of any known version in the form of the current one."""
    version = plain.get("schema")
    if type(version) is not int:
        raise RecordError(f"record schema {version!r} is not a version number")
    if version > SCHEMA:
        raise NewerError(
            f"record schema {version}; this version of rulescope reads up to {SCHEMA}: "
            "a newer one wrote it, and can read it"
        )
    for step in range(version, SCHEMA):
        if step not in MIGRATIONS:
            raise RecordError(f"record schema {version}; no version of rulescope wrote that")
        plain = MIGRATIONS[step](plain) | {"schema": step + 1}
    return plain
