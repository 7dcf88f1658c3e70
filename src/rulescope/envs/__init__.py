"""Worlds: :func:`make` builds one from its configuration, :func:`check_env` tests the contract."""

from rulescope.envs.environment_conformance import check_env
from rulescope.envs.environment_factory import make

__all__ = ["check_env", "make"]
