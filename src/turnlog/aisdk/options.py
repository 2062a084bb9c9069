"""What a caller may choose of a view of a history as UI messages, and what follows from it for a version."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal, TypeAlias, TypedDict, Unpack

import msgspec

from turnlog.aisdk.versions import SdkVersion, Version, sdk_version, supports
from turnlog.model import BlobRef, Message

GenerateId: TypeAlias = Callable[[int, Message], str]
"""Makes the id of a UI message from its number among all of the session (from 0) and its first message (R-H12)."""

DeveloperView: TypeAlias = Literal["data", "user", "system", "omit"]


class UIMessageOptions(TypedDict, total=False):
    """Options of everything that makes UI messages of a history; each has a default."""

    version: Version
    """The AI SDK that will read them. Default 7."""
    include_reasoning: bool
    """Whether there are reasoning parts (R-H10). Default True."""
    merge_tool_results: bool
    """Whether a call shows its result; without, every call is `input-available` (R-H5, R-H11). Default True."""
    merge_steps: bool
    """Whether all model calls between two prompts are one UI message, each behind a `step-start`. Default True."""
    generate_id: GenerateId | None
    """Default: the id of the first message, which stays the same on every call (R-H12)."""
    tools: Literal["dynamic", "named"]
    """`dynamic-tool` parts, or `tool-<name>` parts for pages that declare their tools. Default `dynamic`."""
    developer: DeveloperView
    """What becomes of text that the agent's harness put in (role `developer`), for which AI SDK has no role.

    `data`: a part `data-turnlog-message` of its neighbour, which pages and models do not see unless they look for it.
    `user`, `system`: a message of that role, as a model would get it. `omit`: nothing. Default `data`.
    """
    include_metadata: bool
    """Whether `metadata.turnlog` keeps what AI SDK cannot say, so that the history can be made anew. Default True."""
    blob_url: Callable[[BlobRef], str] | None
    """Makes the absolute address of a file whose bytes are in a store. Default None: it is told of as data."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """`UIMessageOptions` with every default filled in."""

    version: Version = 7
    include_reasoning: bool = True
    merge_tool_results: bool = True
    merge_steps: bool = True
    generate_id: GenerateId | None = None
    tools: Literal["dynamic", "named"] = "dynamic"
    developer: DeveloperView = "data"
    include_metadata: bool = True
    blob_url: Callable[[BlobRef], str] | None = None
    features: frozenset[str] = frozenset()
    """What the version has, of all that matters here."""

    @classmethod
    def of(cls, **options: Unpack[UIMessageOptions]) -> View:
        """Fill in the defaults; raise ValueError for a version that is not supported."""
        version = sdk_version(options.get("version", 7))
        return cls(**options, features=_features_of(version))


_FEATURES = (
    "approval-descriptor",
    "approval-request-reason",
    "approval-schema-input",
    "approval-signature",
    "approvals",
    "automatic-approvals",
    "citations",
    "custom-content",
    "provider-reference",
    "raw-input",
    "reasoning-file",
    "result-metadata",
    "streamed-call-metadata",
    "tool-metadata",
    "tool-title",
)


@cache
def _features_of(version: SdkVersion) -> frozenset[str]:
    return frozenset({name for name in _FEATURES if supports(version, name)})
