"""Rulescope audits learned reinforcement-learning update rules.

It holds the rule's weights fixed, pins or replaces what the learner remembers, and measures what
changes. See ``rulescope --help`` for the command line, and :mod:`rulescope.spec` for the data
model.
"""

__version__ = "0.1.0"

# Here, because it hashes the source: modules are read from the disk from now on.
from rulescope.core import source_hash as source_hash
