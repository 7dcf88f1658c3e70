"""Rows of estimates from the names that are printed of them, which are short to write in tests."""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays import legacy_keys
from rulescope.assays.estimates import Estimates, Floats
from rulescope.stats import Estimate, Window


def rows(
    assay: str,
    found: Mapping[str, Estimate],
    series: Mapping[str, Floats] | None = None,
    windows: Mapping[str, Window] | None = None,
) -> Estimates:
    """Return the rows of an assay's estimates by name, such as ``score/catch/live/0.001``.

    ``series`` may hold the values of lifetimes, under ``seeds/<name>``.
    """
    return legacy_keys.as_rows(assay, found, series or {}, windows or {}, frozenset())
