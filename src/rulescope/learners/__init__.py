"""Learners: :func:`make` builds one from its configuration."""

from rulescope.learners.learner_factory import make

__all__ = ["make"]
