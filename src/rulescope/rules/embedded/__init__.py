"""The rules that are part of the package, each with the whole record of its discovery.

A folder beside this file is what ``rulescope discover`` wrote: the rule, the meta-curves, and the
manifest with the specification. The hash of every rule is pinned here, as for released rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from rulescope.rules.released_rules import Architecture

RULE = "rule.npz"


@dataclass(frozen=True)
class Embedded:
    """One rule of the package."""

    name: str
    sha256: str
    """Hash of the file."""
    content: str
    """Hash of the names, shapes and values of its arrays, as in ``start`` of a discovery."""
    description: str
    architecture: Architecture = "disco"

    @property
    def folder(self) -> Path:
        """The record of its discovery."""
        return Path(__file__).parent / self.name

    @property
    def path(self) -> Path:
        """The file of its weights."""
        return self.folder / RULE


_ALL = (
    Embedded(
        name="lpg-small",
        sha256="10e3aa5390dbc3ed183524cab8ac73e3add68d68060445a914b70179651d84e8",
        content="dbf6d19c076724941d6180f3cb24e56280e6c18b5260ac98728a2b5bb0083ad1",
        description="A small LPG rule, by evolution on the small worlds of Sprout's training",
        architecture="lpg",
    ),
    Embedded(
        name="sprout",
        sha256="8230e3dcff6da93e441753710aea7219054a66bde0d7c52c7dbc8eab114b0f8d",
        content="4210cc9628933f5a81262525dcb7aff549bef1cf3fdd0870dea7a8f4895daef7",
        description="Sprout, a small Disco rule discovered on small worlds",
    ),
    Embedded(
        name="sprout-early",
        sha256="7182617dadc918a0362d416917f9670840ae0d511d088d3fa04b0ec460c52339",
        content="233e48f91e1c3e29cebe7fcbec762164eb9449fe53e9f5ef6fa75d889977e7d9",
        description="Sprout after its first discovery, from short lifetimes",
    ),
    Embedded(
        name="sprout-scales",
        sha256="de529858013f0d418ddaaa85dfb32e4a54d8cc4f8471c9fd0c1dd64a24e4c315",
        content="81b12384cf049d3201a3dbf428ca20279128bc61620b5e7be264aead14e38aa9",
        description="Variant of Sprout whose agents had reward scales from 0.01 to 100",
    ),
    Embedded(
        name="sprout-start",
        sha256="9a24d53f208762b8aa69cd5c45fbc8088bda7932a6829714e542fbc80a2022dc",
        content="5917f7fdc3c830fd3e34dee84a556cb48db4e98815ed36afff2e7080d0d986c8",
        description="The start of Sprout: a rule that imitates clipped-advantage improvement",
    ),
)

EMBEDDED: Mapping[str, Embedded] = MappingProxyType({rule.name: rule for rule in _ALL})
"""Embedded rules by name."""


def of_content(content: str) -> Embedded | None:
    """Return the embedded rule with this content, if there is one."""
    return next((rule for rule in _ALL if rule.content == content), None)
