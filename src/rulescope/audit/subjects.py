"""The lookup of the rule under audit; see :mod:`rulescope.assays.subject`."""

from rulescope.assays.subject import Subject as Audited
from rulescope.assays.subject import find_subject as find

__all__ = ["Audited", "find"]
