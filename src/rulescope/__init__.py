"""Rulescope audits learned reinforcement-learning update rules.

It holds the rule's weights fixed, pins or replaces what the learner remembers, and measures what
changes. See ``rulescope --help`` for the command line, and :mod:`rulescope.spec` for the data
model.
"""

# First, because it hashes the source: modules are read from the disk from now on.
from rulescope.core import source_hash as source_hash
from rulescope.core.version import __version__ as __version__
