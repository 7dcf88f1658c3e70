"""Errors with messages for users: the problem, its place, and the nearest valid choice.

:func:`counted` is the text of a number of things, in messages and elsewhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class RulescopeError(Exception):
    """An error that the user can fix; the command line prints it without a traceback."""


class SpecError(RulescopeError):
    """A specification that cannot be run: unknown key, wrong type, impossible combination."""


class WeightsError(RulescopeError):
    """Rule weights that are missing, damaged, or not those of their name."""


class DivergedError(RulescopeError):
    """A learner whose numbers are no longer finite."""


class WorldError(RulescopeError):
    """A world that violated the environment contract."""


class RecordError(RulescopeError):
    """A record or checkpoint that cannot be trusted or written."""


class PassingError(RecordError):
    """A transient fault, such as a full disk: the next attempt may succeed."""


class ExitError(RulescopeError):
    """Code of a rule or a world that called ``sys.exit``."""


@contextmanager
def refusing_exit(what: str) -> Iterator[None]:
    """Turn ``sys.exit`` in a plug-in's code into an :class:`ExitError` that names ``what``.

    Otherwise the program would end, perhaps with exit code 0 as if everything were completed.
    """
    try:
        yield
    except SystemExit as fault:
        code = "" if fault.code is None else repr(fault.code)
        raise ExitError(
            f"{what} called sys.exit({code}); rules and worlds must raise an error instead"
        ) from None


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return a hint such as ``"; nearest: 'catch'; valid: catch, catch-big"``.

    The list of valid choices is always given, the nearest one only where something is near.
    """
    valid = sorted(choices)
    close = difflib.get_close_matches(word, valid, n=1, cutoff=0.5)
    hint = f"; nearest: {close[0]!r}" if close else ""
    return f"{hint}; valid: {', '.join(valid)}"


def counted(number: int, thing: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "seed"), counted(1008, "lifetime")
    ('1 seed', '1,008 lifetimes')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
