"""Errors that a person can act on: what was wrong, where, and the nearest valid choice."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RulescopeError(Exception):
    """Anything the user can put right; the command line prints it without a traceback."""


class SpecError(RulescopeError):
    """A specification that cannot be run: unknown key, wrong type, impossible combination."""


class WeightsError(RulescopeError):
    """Rule weights that are missing, damaged, or not what their name promises."""


class DivergedError(RulescopeError):
    """A learner whose numbers are no longer finite."""


class RecordError(RulescopeError):
    """A record or checkpoint that cannot be trusted or written."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return a hint such as ``"; nearest: 'catch'; valid: catch, catch-big"``.

    The list of valid choices is always given, the nearest one only where something is near.
    """
    valid = sorted(choices)
    close = difflib.get_close_matches(word, valid, n=1, cutoff=0.5)
    hint = f"; nearest: {close[0]!r}" if close else ""
    return f"{hint}; valid: {', '.join(valid)}"
