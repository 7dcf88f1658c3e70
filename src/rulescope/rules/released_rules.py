"""The released rules: file name, address and hash of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Literal

from rulescope.core.errors import WeightsError, nearest

Architecture = Literal["disco", "open", "lpg", "lpo"]

# Commits, not branches: the file behind the address must not change.
_DISCO = (
    "https://raw.githubusercontent.com/google-deepmind/disco_rl/"
    "9059a29f7121d60948f25ef165e08e050e9399c8/disco_rl/update_rules/weights/"
)
_OPEN = (
    "https://raw.githubusercontent.com/AlexGoldie/rl-learned-optimization/"
    "b65037bd89c09f31e80c5d49f1d78cc9c6dc43e0/rl_optimizer/pretrained/"
)


@dataclass(frozen=True)
class Rule:
    """One released file of rule weights."""

    name: str
    architecture: Architecture
    """``disco`` and ``lpg`` set the targets of the learner, ``lpo`` is a term of its loss, ``open``
    an optimiser for its parameters."""
    file: str
    """Path of the file inside a folder of weights, with ``/`` between the parts."""
    url: str
    sha256: str
    """Hash of the file, 64 hexadecimal digits."""
    size: int
    """Size of the file in bytes."""
    parameters: int
    description: str
    licence: str = "Apache-2.0"

    @property
    def basename(self) -> str:
        """The file's own name, without the sub-folder."""
        return PurePosixPath(self.file).name


def _open(task: str, sha256: str, description: str, *, large: bool = False) -> Rule:
    """Return one OPEN rule; there are two sizes, and only ``multi`` has the large one."""
    parameters, size = (3571, 14_412) if large else (1211, 4_972)
    file = f"{task}_OPEN.npy"
    return Rule(
        f"open-{task}", "open", f"open/{file}", _OPEN + file, sha256, size, parameters, description
    )


_ALL = (
    Rule(
        name="disco103",
        architecture="disco",
        file="disco_103.npz",
        url=_DISCO + "disco_103.npz",
        sha256="dac840a15b81e8805326363458c33979626172618f620d9e6e170315388530aa",
        size=2_803_507,
        parameters=754_778,
        description="Disco103, the discovered rule with a recurrent lifetime state",
    ),
    _open(
        "multi",
        "9ba2dea70b0b308a365516dab092808b7b9211c70072bca934d83affaee5f60c",
        "OPEN optimiser trained on several MinAtar games together",
        large=True,
    ),
    _open(
        "breakout",
        "d7f0876c78736a0e354f8837e2a549dc7f45ff4d01f952ba9d547d8afc6f7926",
        "OPEN optimiser trained on MinAtar Breakout",
    ),
    _open(
        "freeway",
        "97ea3f8f9a6e34523dd50c138a1538b33fbd2b1c3a5ee05a31014460825ea9f0",
        "OPEN optimiser trained on MinAtar Freeway",
    ),
    _open(
        "asterix",
        "55d96c80dca70e4a308352798daec00fc962d7a3faacc24f612e1b437c1893aa",
        "OPEN optimiser trained on MinAtar Asterix",
    ),
    _open(
        "spaceinvaders",
        "42845f4c0b6b460789afffb1788f806e676b27acafa0febf34e86bd63d3e362f",
        "OPEN optimiser trained on MinAtar Space Invaders",
    ),
    _open(
        "ant",
        "e1901cafe323d1c5619b84e5178b3075c95a7cde920777e2c15e58c812c3e725",
        "OPEN optimiser trained on the Ant locomotion task",
    ),
    _open(
        "gridworld",
        "16ebb93a79adbcbfdb3e6019986109ee374764cb9cc8b0ad65f69bdcaedd9bb5",
        "OPEN optimiser trained on small grid worlds",
    ),
)

RULES: Mapping[str, Rule] = MappingProxyType({rule.name: rule for rule in _ALL})
"""Released rules by name, in the order in which they are listed."""


def get(name: str) -> Rule:
    """Return the rule called ``name``; an unknown name is an error that gives the nearest one."""
    try:
        return RULES[name]
    except KeyError:
        raise WeightsError(f"no rule is called {name!r}{nearest(name, RULES)}") from None
