"""The base of every specification part: frozen, strict, and stable under the growth of the schema.

Fields at their default are left out of the canonical form, so a field added later (with a default
that means "as before") does not change the identity of any run that already exists.
"""

from __future__ import annotations

import msgspec


class Frozen(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
):
    """Immutable data with strict decoding; members of a union set ``tag`` and ``tag_field="kind"``.

    (Subclasses repeat ``frozen=True`` only because type checkers do not inherit it.)
    """
