"""Numbers of tokens and of money that can be ones: a record that holds another was written by a fault."""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
"""A number of tokens."""

Money = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""An amount in dollars, or whatever the record says."""
