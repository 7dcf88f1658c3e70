"""Types of fields that several configurations share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Positive = Annotated[int, Meta(ge=1)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Meta(ge=0.0)]
Rate = Annotated[float, Meta(gt=0.0, le=100.0)]
Norm = Annotated[float, Meta(gt=0.0)]
Decay = Annotated[float, Meta(ge=0.0, lt=1.0)]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
