"""What a chat page asks for, and what becomes of the chat's messages: `DefaultChatTransport` of AI SDK 5, 6 and 7.

A browser is believed in three things only: new messages of its user, its answers to questions whether a tool may
run, and the outcomes of calls that wait for it. Everything else in its messages is the server's own, and what the
server has stored is taken by id. Nothing here reads a store or runs anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec

from turnlog.aisdk.base import UIValue
from turnlog.aisdk.convert import METADATA
from turnlog.aisdk.json_text import parse_json
from turnlog.aisdk.parts import DynamicToolUIPart, ToolUIPart, UIMessage, UIMessagePart
from turnlog.aisdk.receive import from_ui_messages
from turnlog.aisdk.validate import validate_ui_messages
from turnlog.aisdk.versions import Version
from turnlog.chat.conversion import holds_own_metadata
from turnlog.errors import NotFoundError, ShapeError
from turnlog.model import Message
from turnlog.model.codec import repair_text, to_plain_json

Trigger: TypeAlias = Literal["submit-message", "regenerate-message"]
ToolPart: TypeAlias = ToolUIPart | DynamicToolUIPart

_TRIGGERS: Final[tuple[Trigger, ...]] = ("submit-message", "regenerate-message")
_HALF_CHARACTER: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""What may be one: no store keeps it, no agent and no provider takes it in a prompt."""

_OWN_KEYS: Final = frozenset({"id", "messages", "message", "trigger", "messageId"})


class ChatRequest(UIValue, frozen=True, kw_only=True):
    """The body of a POST; all of it is untrusted."""

    chat_id: str
    messages: tuple[UIMessage, ...]
    """All that the page shows, or only the newest, as the page likes; empty only for `regenerate-message`."""
    trigger: Trigger = "submit-message"
    message_id: str | None = None
    """The message that is edited or regenerated."""
    body: dict[str, Any] = {}
    """What else the page sent."""


class ChatTurn(NamedTuple):
    """What the chat is once a request is taken in."""

    messages: list[UIMessage]
    """What the runtime is given."""
    continued: UIMessage | None
    """The assistant message that goes on, the last of `messages`; None where a new one is to be made."""
    retracted: list[UIMessage]
    """Stored messages that are no longer in it, because one was edited or is made anew."""
    changed: bool = False
    """Whether the last of `messages` is not as it is stored."""


def parse_chat_request(data: bytes | str, *, version: Version = 7) -> ChatRequest:
    """The body of a POST, with `messages` or with one `message`.

    Raises:
        ShapeError: It is not such a body, or its messages are not valid for the version (answer 400).
    """
    body = _parse_object(data)
    trigger = _parse_trigger(body.get("trigger"))
    messages = _parse_messages(body, version)
    if not messages and trigger == "submit-message":
        raise ShapeError("expected messages or a message")
    return ChatRequest(
        chat_id=_parse_text(body, "id"),
        messages=tuple(messages),
        trigger=trigger,
        message_id=None if body.get("messageId") is None else _parse_text(body, "messageId"),
        body={key: value for key, value in body.items() if key not in _OWN_KEYS},
    )


def take_in(stored: Sequence[UIMessage], request: ChatRequest) -> ChatTurn:
    """Join a request with what is stored of its chat (nothing for a new one).

    Raises:
        NotFoundError: It is about a message that the chat does not have (answer 404).
        ShapeError: Its newest message is a system message, or continues one that is not the chat's last (answer 400).
    """
    if request.trigger == "regenerate-message":
        return _regenerate(stored, request)
    newest = request.messages[-1]
    if newest.role == "user":
        return _submit(stored, newest)
    if newest.role == "assistant":
        return _continue(stored, newest)
    raise ShapeError("a page sends no system messages", json_path="$.messages")


def _regenerate(stored: Sequence[UIMessage], request: ChatRequest) -> ChatTurn:
    """Make an answer anew: the named one, or that to the last message that the page still shows, or the last."""
    asked = request.messages[-1] if request.messages and request.messages[-1].role == "user" else None
    index = None if request.message_id is None else _index_of(stored, request.message_id)
    if index is None and asked is not None:
        # Also where the first try never reached the server, so that it has not even the question.
        return _submit(stored, asked)
    if index is None and request.message_id is None:
        index = len(stored) - 1
    if index is None or index < 0:
        raise NotFoundError(f"there is no message {request.message_id or ''} to make anew")
    cut = index + 1 if stored[index].role == "user" else index
    return ChatTurn(list(stored[:cut]), None, list(stored[cut:]))


def _submit(stored: Sequence[UIMessage], newest: UIMessage) -> ChatTurn:
    newest = own_metadata_left_out(newest)
    index = _index_of(stored, newest.id)
    if index is None:
        return ChatTurn([*stored, newest], None, [], changed=True)
    if stored[index].role != "user":
        raise ShapeError("this id is of a message that is not the user's", json_path="$.messages")
    if _says(stored[index]) == _says(newest):
        # Sent twice, or asked again: the message stays, its answer is made anew.
        return ChatTurn(list(stored[: index + 1]), None, list(stored[index + 1 :]))
    return ChatTurn([*stored[:index], newest], None, list(stored[index:]), changed=True)


def _says(message: UIMessage) -> list[Message]:
    """What a message says, however it is written."""
    return from_ui_messages([message]).messages


def own_metadata_left_out(message: UIMessage) -> UIMessage:
    """The message without what only turnlog says and reads of it."""
    if not holds_own_metadata(message):
        return message
    rest = {key: value for key, value in cast("dict[str, Any]", message.metadata).items() if key != METADATA}
    return msgspec.structs.replace(message, metadata=rest or msgspec.UNSET)


def _continue(stored: Sequence[UIMessage], newest: UIMessage) -> ChatTurn:
    index = _index_of(stored, newest.id)
    if index is None:
        raise NotFoundError(f"there is no message {newest.id} to go on with")
    if index != len(stored) - 1 or stored[index].role != "assistant":
        raise ShapeError("only the last message can go on", json_path="$.messages")
    merged = merge_answers(stored[index], newest)
    return ChatTurn([*stored[:index], merged], merged, [], changed=merged != stored[index])


def merge_answers(stored: UIMessage, sent: UIMessage) -> UIMessage:
    """The stored message with the page's answers to its open tool calls, and nothing else of what was sent."""
    answers = {part.tool_call_id: part for part in sent.parts if isinstance(part, ToolUIPart | DynamicToolUIPart)}
    return msgspec.structs.replace(stored, parts=tuple(_answered(part, answers) for part in stored.parts))


def _answered(part: UIMessagePart, answers: dict[str, ToolPart]) -> UIMessagePart:
    if not isinstance(part, ToolUIPart | DynamicToolUIPart):
        return part
    answer = answers.get(part.tool_call_id)
    if answer is None:
        return part
    if part.state == "approval-requested":
        return _approved(part, answer)
    if part.state == "input-available" and part.provider_executed is not True:
        return _with_outcome(part, answer)
    return part


def _approved(part: ToolPart, answer: ToolPart) -> ToolPart:
    """The question is the stored one; of the page come yes or no, and why."""
    asked, told = part.approval, answer.approval
    if answer.state != "approval-responded" or not asked or not told or asked.id != told.id:
        return part
    approval = msgspec.structs.replace(asked, approved=told.approved, reason=told.reason)
    return msgspec.structs.replace(part, state="approval-responded", approval=approval)


def _with_outcome(part: ToolPart, answer: ToolPart) -> ToolPart:
    if answer.state == "output-available" and answer.preliminary is not True:
        return msgspec.structs.replace(part, state="output-available", output=answer.output)
    if answer.state == "output-error":
        return msgspec.structs.replace(part, state="output-error", error_text=answer.error_text)
    return part


def _index_of(messages: Sequence[UIMessage], message_id: str) -> int | None:
    return next((index for index, message in enumerate(messages) if message.id == message_id), None)


# -- parsing


def _parse_object(data: bytes | str) -> dict[str, Any]:
    try:
        body: Any = parse_json(repair_text(data) if isinstance(data, str) else data, unsafe_keys=True)
    except ValueError as error:
        raise ShapeError(f"not JSON: {error}") from error
    if isinstance(data, str) or _HALF_CHARACTER.search(data):
        body = to_plain_json(body)
    if not isinstance(body, dict):
        raise ShapeError("expected an object")
    return cast("dict[str, Any]", body)


def _parse_trigger(value: object) -> Trigger:
    if value is None:
        return "submit-message"
    for trigger in _TRIGGERS:
        if value == trigger:
            return trigger
    raise ShapeError(f"expected one of {', '.join(_TRIGGERS)}", json_path="$.trigger")


def _parse_messages(body: dict[str, Any], version: Version) -> list[UIMessage]:
    if "messages" in body:
        values = body["messages"]
        if not isinstance(values, list):
            raise ShapeError("expected a list of messages", json_path="$.messages")
        return validate_ui_messages(cast("list[dict[str, Any]]", values), version=version) if values else []
    return validate_ui_messages([body["message"]], version=version) if "message" in body else []


def _parse_text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise ShapeError("expected a string that is not empty", json_path=f"$.{key}")
    return value
