"""How a history becomes UI messages: the options, and which messages form one UI message.

Grouping depends on roles and ids alone, message by message. A store pages by these rules without reading a body, and
the conversion follows them, so a page never splits a UI message.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Literal, TypeAlias, TypedDict, Unpack

import msgspec

from turnlog.aisdk.versions import SdkVersion, Version, sdk_version, supports
from turnlog.model import BlobRef, Message

GenerateId: TypeAlias = Callable[[int, Message], str]
"""Makes the id of a UI message from its index in the session (from 0) and its first message (R-H12)."""

DeveloperView: TypeAlias = Literal["data", "user", "system", "omit"]


class UIMessageOptions(TypedDict, total=False):
    """Options of all functions that make UI messages from a history; each has a default."""

    version: Version
    """The AI SDK version that will read them. Default 7."""
    include_reasoning: bool
    """Include reasoning parts (R-H10). Default True."""
    merge_tool_results: bool
    """Calls include their results; otherwise every call is `input-available` (R-H5, R-H11). Default True."""
    merge_steps: bool
    """All model calls between two prompts form one UI message, each after a `step-start`. Default True."""
    step_starts: bool
    """Put a `step-start` before each model call. Otherwise every model call is a UI message, as in Helix: within one
    message, `convertToModelMessages` would move text after a result before it. Default True."""
    generate_id: GenerateId | None
    """Default: the id of the first message, which is the same on every call (R-H12)."""
    tools: Literal["dynamic", "named"]
    """`dynamic-tool` parts, or `tool-<name>` parts for pages that declare their tools. Default `dynamic`."""
    developer: DeveloperView
    """What becomes of text that the agent's harness put in (role `developer`), for which AI SDK has no role.

    `data`: a part `data-turnlog-message` of its neighbour, which pages and models do not see unless they look for it.
    `user`, `system`: a message of that role, as a model would get it. `omit`: nothing. Default `data`.
    """
    include_metadata: bool
    """Keep what the AI SDK cannot express in `metadata.turnlog`, so that the history can be restored. Default True."""
    blob_url: Callable[[BlobRef], str] | None
    """Makes the absolute URL of a file whose bytes are in a store. Default None: the file becomes data."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """`UIMessageOptions` with every default filled in."""

    version: Version = 7
    include_reasoning: bool = True
    merge_tool_results: bool = True
    merge_steps: bool = True
    step_starts: bool = True
    generate_id: GenerateId | None = None
    tools: Literal["dynamic", "named"] = "dynamic"
    developer: DeveloperView = "data"
    include_metadata: bool = True
    blob_url: Callable[[BlobRef], str] | None = None
    features: frozenset[str] = frozenset()
    """The features of the version that matter here."""

    @classmethod
    def of(cls, **options: Unpack[UIMessageOptions]) -> View:
        """Fill in the defaults. Raises ValueError for an unsupported version, or steps merged without `step-start`."""
        version = sdk_version(options.get("version", 7))
        if not options.get("step_starts", True):
            if options.get("merge_steps", False):
                raise ValueError("merge_steps needs step_starts: nothing else marks where a step begins")
            options = {**options, "merge_steps": False}
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


_STEP_OF = re.compile(r"(.+)~\d+", re.DOTALL)
"""The id of a step that came from a UI message: `<its id>~<number>` (`step_id`)."""


def step_id(ui_message_id: str, number: int) -> str:
    """The id of a model call in an assistant UI message; numbers count from 1."""
    return f"{ui_message_id}~{number}"


def ui_message_id(message_id: str) -> str | None:
    """The id of the UI message that contains a step; None for a message of an agent."""
    found = _STEP_OF.fullmatch(message_id)
    return None if found is None else found[1]


class MessageGrouping:
    """Decides for each message of a history, in order, whether it begins a UI message."""

    def __init__(self, view: View) -> None:
        """Follow the options of a view."""
        self._view = view
        self._open: str | None = None
        """The role whose UI message is open; `developer` while it holds only our own data parts."""
        self._source: str | None = None

    def includes(self, role: str) -> bool:
        """Whether messages with a role are shown at all."""
        return role != "developer" or self._view.developer != "omit"

    def starts_ui_message(self, role: str, message_id: str) -> bool:
        """Whether the next shown message begins a UI message."""
        if role == "developer" and self._view.developer == "data":
            starts = self._open is None
            self._open = self._open or "developer"
            return starts
        source = ui_message_id(message_id) if role == "assistant" else None
        starts = not self._joins(role, source)
        self._open, self._source = role, source
        return starts

    def _joins(self, role: str, source: str | None) -> bool:
        if self._open == "developer" and self._view.developer == "data":
            return True
        return self._view.merge_steps and self._open == role == "assistant" and self._source == source
