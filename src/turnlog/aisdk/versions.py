"""AI SDK versions and features: for each feature its first release in every major version.

All three majors are still released and features are ported back, so support depends on the release, never on the major
alone. Annotations on the structs of parts and chunks say what a feature means (`base.Since`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import msgspec

from turnlog.arguments import refusal


class SdkVersion(NamedTuple):
    """A release of the npm package `ai`, ordered as releases are."""

    major: int
    minor: int = 0
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


Version: TypeAlias = int | str | SdkVersion
"""A version: 5, 6, 7 (the newest known release of it), "6.0.100", or an SdkVersion."""


NEWEST: Final = MappingProxyType(
    {5: SdkVersion(5, 0, 277), 6: SdkVersion(6, 0, 326), 7: SdkVersion(7, 0, 173)},
)
"""The releases against which turnlog is tested; a bare major means these."""

_EVERYWHERE = {5: 0, 6: 0, 7: 0}
_SINCE_6 = {6: 0, 7: 0}
_SINCE_7 = {7: 0}

_FIRST_PATCH: dict[str, dict[int, int]] = {
    "base": _EVERYWHERE,
    # Tools
    "tool-input-error": {5: 7, 6: 0, 7: 0},
    "preliminary-output": {5: 11, 6: 0, 7: 0},
    "tool-title": _SINCE_6,
    "streamed-call-metadata": {6: 39, 7: 0},
    "result-metadata": {6: 120, 7: 0},
    "tool-metadata": {6: 176, 7: 0},
    "raw-input": {5: 270, 6: 297, 7: 122},
    "input-encoding": {6: 308, 7: 142},
    "unavailable-tool": {5: 250, 6: 271, 7: 83},
    # Approvals
    "approvals": _SINCE_6,
    "approval-signature": {6: 202, 7: 0},
    "approval-descriptor": {6: 274, 7: 87},
    "approval-schema-input": {6: 290, 7: 113},
    "approval-request-reason": {7: 82},
    "automatic-approvals": _SINCE_7,
    # Content
    "reasoning-id": {5: 234, 6: 253, 7: 63},
    "file-metadata": _SINCE_6,
    "reasoning-file": _SINCE_7,
    "custom-content": _SINCE_7,
    "provider-reference": _SINCE_7,
    "citations": {7: 138},
    "steering-messages": {7: 163},
    # Streams
    "finish-reason": {5: 92, 6: 0, 7: 0},
    "finish-reason-unknown": {5: 92},
    "finish-reason-interrupted": {7: 149},
    "abort-reason": {6: 15, 7: 0},
    "reset-step": {7: 70},
    "unknown-keys": {5: 217, 6: 231, 7: 32},
}
"""Feature -> major -> first patch of x.0. A major without a number never had it.

"unknown-keys" is the client's patience: before it, one key that the release does not know ends the whole stream.
"""

FEATURES: Final = MappingProxyType(
    {
        name: MappingProxyType({major: SdkVersion(major, 0, patch) for major, patch in first.items()})
        for name, first in _FIRST_PATCH.items()
    },
)
"""Feature -> major -> the first release with it."""


def sdk_version(version: Version) -> SdkVersion:
    """The release for a version. Raises ValueError for a major other than 5, 6 and 7."""
    if isinstance(version, SdkVersion):
        release = version
    elif isinstance(version, int) and not isinstance(version, bool):
        release = NEWEST.get(version, SdkVersion(version))
    elif isinstance(version, str):
        release = _parse_version(version)
    else:
        # Not `checked`: it is called for each chunk.
        raise refusal("version", version, "5, 6, 7 or a release as '6.0.100'")
    if release.major not in NEWEST:
        raise ValueError(f"AI SDK {release.major} is not supported, only {', '.join(map(str, NEWEST))} are")
    return release


def _parse_version(text: str) -> SdkVersion:
    numbers = text.split(".")
    if not all(number.isascii() and number.isdecimal() for number in numbers) or len(numbers) not in (1, 3):
        raise ValueError(f"not a version of AI SDK: {text!r} (5, 6, 7 or as 6.0.100)")
    if len(numbers) == 1:
        return sdk_version(int(text))
    return SdkVersion(*map(int, numbers))


def supports(version: Version, feature: str) -> bool:
    """Whether a release has a feature of `FEATURES`. Raises ValueError for an unknown feature."""
    release = sdk_version(version)
    known = FEATURES.get(feature)
    if known is None:
        raise ValueError(f"feature cannot be {feature!r}: expected one of {', '.join(FEATURES)}")
    first = known.get(release.major)
    return first is not None and release >= first


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the target cannot contain."""

    feature: str
    """Its name: for a missing feature, its key in `FEATURES`."""
    path: str
    """The path in the value that was converted, such as `$.parts[3].title`."""
    reason: str
    """What happened to it, in words."""
