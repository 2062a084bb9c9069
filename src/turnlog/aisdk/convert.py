"""History -> UI messages, for a page with `useChat` or for a model (R-H1 to R-H12).

`to_ui_json` makes the JSON of UI messages from stored bodies without decoding their contents; `to_ui_messages` does the
same for values. What the AI SDK has no field for is in `metadata.turnlog.messages`. It has an entry per canonical
message, without what the UI message contains. `turnlog.aisdk.receive` makes the history from it again. The result also
lists what is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, Unpack

import msgspec
from msgspec import UNSET, Raw

from turnlog.aisdk.codec import parse_ui_messages
from turnlog.aisdk.convert_parts import OWN_MESSAGE, CallWriter, UIPartJson
from turnlog.aisdk.metadata import sdk_extras_of
from turnlog.aisdk.parts import UIMessage
from turnlog.aisdk.raw_message import RawMessage, RawReasoning, RawToolCall, parse_raw_message
from turnlog.aisdk.versions import Loss
from turnlog.aisdk.view import MessageGrouping, UIMessageOptions, View, ui_message_id
from turnlog.arguments import checked
from turnlog.model import HistoryEvent, Message, MessageEvent, ToolCallPart, ToolResultEvent
from turnlog.model.codec import decode_message, encode
from turnlog.model.merge import add_results

METADATA = "turnlog"
"""turnlog's key in the metadata of a UI message."""

_STEP_START: UIPartJson = {"type": "step-start"}

_encoder = msgspec.json.Encoder()

History: TypeAlias = Iterable[Message | HistoryEvent]
"""Messages with their results, or a whole history (`Store.history`) with results as separate events."""


class UIConversion(NamedTuple):
    """UI messages, and the losses."""

    messages: list[UIMessage]
    losses: list[Loss]


@checked
def to_ui_messages(history: History, **options: Unpack[UIMessageOptions]) -> UIConversion:
    """The UI messages of a history (R-H1 to R-H9).

    Other events than messages and results are skipped, because the AI SDK has no place for them. A result without its
    call is reported as a loss.

    Raises:
        ValueError: The version is not supported, or options exclude each other.
    """
    messages, orphans = with_results(history)
    made = to_ui_json([encode(message) for message in messages], **options)
    losses = [
        Loss(feature="orphan-result", path="$", reason=f"no call {orphan.tool_call_id} is known that it could answer")
        for orphan in orphans
    ]
    return UIConversion(parse_ui_messages(made.to_json(), strict=False), [*made.losses, *losses])


def with_results(history: History) -> tuple[list[Message], list[ToolResultEvent]]:
    """Messages with the results of their calls, whenever those arrived; and the results without a call."""
    messages: list[Message] = []
    arrived: dict[str, list[ToolResultEvent]] = {}
    for item in history:
        if isinstance(item, ToolResultEvent):
            arrived.setdefault(item.tool_call_id, []).append(item)
        elif isinstance(item, Message):
            messages.append(item)
        elif isinstance(item, MessageEvent):
            messages.append(item.message)
    joined = [_answer_calls(message, arrived) for message in messages] if arrived else messages
    return joined, [event for events in arrived.values() for event in events]


def _answer_calls(message: Message, arrived: dict[str, list[ToolResultEvent]]) -> Message:
    """The message with the results of its calls, which are removed from `arrived`."""
    if not any(isinstance(part, ToolCallPart) and part.tool_call_id in arrived for part in message.parts):
        return message
    parts = list(message.parts)
    for number, part in enumerate(parts):
        if isinstance(part, ToolCallPart):
            parts[number] = add_results(part, [event.result for event in arrived.pop(part.tool_call_id, ())])
    return msgspec.structs.replace(message, parts=tuple(parts))


class UIJson(NamedTuple):
    """UI messages, ready to be written as JSON."""

    objects: list[dict[str, Any]]
    """The fields of each message, whose values are exact JSON."""
    losses: list[Loss]

    def to_json(self) -> bytes:
        """All messages as one JSON array."""
        return _encoder.encode(self.objects)

    @property
    def messages(self) -> list[bytes]:
        """The JSON of each."""
        return [_encoder.encode(message) for message in self.objects]


@checked
def to_ui_json(
    bodies: Iterable[bytes],
    *,
    first_index: int = 0,
    children: Mapping[str, str] | None = None,
    **options: Unpack[UIMessageOptions],
) -> UIJson:
    """The JSON of UI messages from canonical bodies (JSON of `turnlog.model.Message`), in the order of a history.

    Args:
        bodies: The bodies.
        first_index: The index of the first UI message in the session, for `generate_id`.
        children: Tool call id -> id of the session that the call started.
        options: See `UIMessageOptions`.

    Raises:
        msgspec.ValidationError: A body does not have the canonical shape.
        ValueError: The version is not supported.
    """
    converter = _Converter(View.of(**options), first_index, children or {})
    for body in bodies:
        converter.add(body)
    return converter.finish()


class _UIMessageDraft:
    """A UI message that is being built."""

    __slots__ = ("body", "id", "metadata", "parts", "raw_messages", "role")

    def __init__(self) -> None:
        self.id: str | None = None
        self.role = "assistant"
        self.body = b""
        """The canonical message that it is named after."""
        self.parts: list[Any] = []
        self.raw_messages: list[RawMessage] = []
        self.metadata: Raw | None = None


class _Converter:
    def __init__(self, view: View, first_index: int, children: Mapping[str, str]) -> None:
        self._view = view
        self._first_index = first_index
        self._children = children
        self._grouping = MessageGrouping(view)
        self._open = _UIMessageDraft()
        self._done: list[dict[str, Any]] = []
        self._losses: list[Loss] = []
        self._writer = CallWriter(view, self._losses)
        self._number = -1

    def add(self, body: bytes) -> None:
        """Add the next message of the history."""
        self._number += 1
        message = parse_raw_message(body)
        role = message.role
        if not self._grouping.includes(role):
            self._add_loss("developer-messages", "left out, as asked for")
            return
        if self._grouping.starts_ui_message(role, message.id):
            self._close()
        if role == "developer":
            if self._view.developer == "data":
                self._open.parts.append({"type": OWN_MESSAGE, "id": message.id, "data": Raw(body)})
                self._set_identity(message, body, None)
                return
            role = self._view.developer
        self._set_identity(message, body, role)
        self._add_message(message, role)

    def finish(self) -> UIJson:
        """Close the last UI message."""
        self._close()
        return UIJson(self._done, self._losses)

    def _set_identity(self, message: RawMessage, body: bytes, role: str | None) -> None:
        """Set the id: that of the first message, or of the first developer message if there is no other."""
        draft = self._open
        if draft.id is None or (role is not None and not draft.raw_messages):
            draft.id, draft.body = message.id, body
        if role is not None:
            draft.role = role

    def _add_message(self, message: RawMessage, role: str) -> None:
        draft = self._open
        if message.parts is not UNSET:
            self._drop_reasoning(message)
        if role == "assistant" and self._view.step_starts:
            # `convertToModelMessages` splits here. Without it, text that follows a result would come before the result.
            draft.parts.append(_STEP_START)
        elif not message.parts:
            # Every validator refuses a user or system message without parts; older ones also refuse an assistant's.
            draft.parts.append({"type": "text", "text": ""})
        if message.parts is not UNSET:
            self._add_parts(message)
        if message.metadata is not UNSET:
            self._keep_metadata(message)
        draft.raw_messages.append(message)

    def _drop_reasoning(self, message: RawMessage) -> None:
        parts = message.parts
        if self._view.include_reasoning or parts is UNSET:
            return
        kept = [part for part in parts if type(part) is not RawReasoning]
        if len(kept) < len(parts):
            self._add_loss("reasoning", "left out, as asked for")
            message.parts = kept

    def _add_parts(self, message: RawMessage) -> None:
        ui_parts, writer = self._open.parts, self._writer
        for number, part in enumerate(message.parts or ()):
            writer.place = (self._number, number)
            # A log names the subagent of a call in another file, so the store knows it but the message does not.
            if type(part) is RawToolCall and self._children:
                self._add_child(part)
            ui_parts.append(writer.part(part))

    def _add_child(self, part: RawToolCall) -> None:
        if part.tool_call_id is not UNSET and part.child_session_id is UNSET:
            child = self._children.get(msgspec.json.decode(part.tool_call_id, type=str))
            if child is not None:
                part.child_session_id = Raw(msgspec.json.encode(child))

    def _keep_metadata(self, message: RawMessage) -> None:
        assert message.metadata is not UNSET
        metadata = sdk_extras_of(message.metadata).metadata
        if metadata is not UNSET:
            self._open.metadata = metadata

    def _close(self) -> None:
        draft, self._open = self._open, _UIMessageDraft()
        if draft.id is None:
            return
        ui_message: dict[str, Any] = {"id": self._id(draft), "role": draft.role}
        metadata = self._metadata(draft)
        if metadata is not None:
            ui_message["metadata"] = metadata
        ui_message["parts"] = draft.parts
        self._done.append(ui_message)

    def _id(self, draft: _UIMessageDraft) -> str:
        index = self._first_index + len(self._done)
        if self._view.generate_id is not None:
            return self._view.generate_id(index, decode_message(draft.body))
        assert draft.id is not None
        # A page's message is stored as one message for each model call, `<id>~<number>`: the page gets its id back.
        return draft.id if draft.role != "assistant" else ui_message_id(draft.id) or draft.id

    def _metadata(self, draft: _UIMessageDraft) -> Any:
        own = {METADATA: {"messages": draft.raw_messages}}
        if not self._view.include_metadata:
            self._add_loss("metadata", "left out, as asked for")
            return draft.metadata
        if draft.metadata is None:
            return own
        try:
            return msgspec.json.decode(draft.metadata, type=dict[str, Raw]) | own
        except msgspec.ValidationError:
            self._add_loss("metadata", "a page's metadata that is no object has no place for ours")
            return own

    def _add_loss(self, feature: str, reason: str) -> None:
        self._losses.append(Loss(feature=feature, path=f"$[{self._number}]", reason=reason))
