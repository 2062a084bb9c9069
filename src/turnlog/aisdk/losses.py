"""What a conversion could not carry: values returned beside the result, one a feature and place."""

from __future__ import annotations

import msgspec


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the target cannot hold."""

    feature: str
    """Its name: for a missing feature of a release the one in `FEATURES`."""
    path: str
    """Where it stood in the value that was converted, as in `$.parts[3].title`."""
    reason: str
    """What became of it, for people."""
