"""What a chat page asks for: its request parsed, and the plan of the answer (`DefaultChatTransport` of AI SDK 5 to 7).

A request goes one way. `parse_chat_request` turns its bytes into a `ChatRequest`; whatever is wrong with the request
alone is refused here. `plan_answer` compares it with the stored chat and decides. The client is believed in three
things only: new messages of its user, its answers to permission requests, and the outcomes of tool calls that wait for
it. Everything else comes from the stored messages, which are found by id. Nothing here reads a store, converts
messages or runs anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from turnlog.aisdk.base import UIValue
from turnlog.aisdk.json_text import parse_json
from turnlog.aisdk.parts import DynamicToolUIPart, ToolUIPart, UIMessage, UIMessagePart
from turnlog.aisdk.validation import validate_ui_messages
from turnlog.aisdk.versions import Version
from turnlog.arguments import check_fields, checked
from turnlog.chat.canonical import with_decisions
from turnlog.chat.conversion import has_same_content, without_own_metadata
from turnlog.errors import ConflictError, NotFoundError, ShapeError
from turnlog.model.codec import repair_text, to_plain_json

Trigger: TypeAlias = Literal["submit-message", "regenerate-message"]
ToolPart: TypeAlias = ToolUIPart | DynamicToolUIPart

_TRIGGERS: Final[tuple[Trigger, ...]] = ("submit-message", "regenerate-message")
_LONE_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""May be half a character, which no store keeps and neither agents nor providers accept in a prompt."""

_OWN_KEYS: Final = frozenset({"id", "messages", "message", "trigger", "messageId"})


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class ChatRequest(UIValue, frozen=True, kw_only=True):
    """The body of a POST; all of it is untrusted."""

    chat_id: str
    messages: tuple[UIMessage, ...]
    """All that the page shows, or only the newest, as the page likes; empty only for `regenerate-message`."""
    trigger: Trigger = "submit-message"
    message_id: str | None = None
    """The message that is edited or regenerated."""
    body: dict[str, Any] = {}
    """Other fields that the page sent."""

    def __post_init__(self) -> None:
        """Raise TypeError for a field of the wrong type."""
        check_fields(self)


class AnswerPlan(NamedTuple):
    """What is to be answered, and what becomes of the stored messages first."""

    messages: list[UIMessage]
    """The chat as the runtime gets it."""
    continued: UIMessage | None
    """The assistant message that continues, the last of `messages`; None if a new one is to be made."""
    retracted: list[UIMessage]
    """Stored messages that leave the chat, because one was edited or is regenerated."""
    is_changed: bool = False
    """Whether the last of `messages` differs from what is stored, and has to be saved."""


# -- parsing


@checked
def parse_chat_request(data: bytes | str, *, version: Version = 7) -> ChatRequest:
    """Parse the body of a POST, with `messages` or with one `message`.

    Raises:
        ShapeError: It is no such body, or its messages are not valid for the version (HTTP 400).
    """
    body = _parse_object(data)
    trigger = _parse_trigger(body.get("trigger"))
    chat_id = _parse_text(body, "id")
    if _CONTROL.search(chat_id):
        # No address leads to such a chat: frameworks match a path line by line.
        raise ShapeError("the id of a chat cannot hold a line break or another control character", json_path="$.id")
    if chat_id in (".", ".."):
        # Browsers take such a segment out of an address.
        raise ShapeError(f"{chat_id} cannot be the id of a chat: no address leads to it", json_path="$.id")
    message_id = None if body.get("messageId") is None else _parse_text(body, "messageId")
    values = _messages_of(body)
    if not values and trigger == "submit-message":
        raise ShapeError("expected messages or a message")
    return ChatRequest(
        chat_id=chat_id,
        messages=tuple(_validated(body, values, version)) if values else (),
        trigger=trigger,
        message_id=message_id,
        body={key: value for key, value in body.items() if key not in _OWN_KEYS},
    )


def _parse_object(data: bytes | str) -> dict[str, Any]:
    # As a server in Node reads a body, with JSON.parse: only streams are refused for keys that reach prototypes.
    try:
        body: Any = parse_json(repair_text(data) if isinstance(data, str) else data, unsafe_keys=True)
    except ValueError as error:
        raise ShapeError(f"not JSON: {error}") from error
    if isinstance(data, str) or _LONE_SURROGATE.search(data):
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


def _parse_text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise ShapeError("expected a string that is not empty", json_path=f"$.{key}")
    return value


def _messages_of(body: dict[str, Any]) -> list[Any]:
    if "messages" not in body:
        return [body["message"]] if "message" in body else []
    values = body["messages"]
    if not isinstance(values, list):
        raise ShapeError("expected a list of messages", json_path="$.messages")
    return cast("list[Any]", values)


def _validated(body: dict[str, Any], values: list[Any], version: Version) -> list[UIMessage]:
    try:
        return validate_ui_messages([_with_answers(value) for value in values], version=version)
    except ShapeError as error:
        # The page sent no list of its own: the place is that in its body.
        place = error.json_path.removeprefix("$")
        place = f"messages{place}" if "messages" in body else f"message{place.removeprefix('[0]')}"
        raise ShapeError(error.reason, json_path=f"$.{place}") from error


_ANSWERS: Final = {"output-available": True, "output-error": True, "output-denied": False}
"""State of a call that has ended -> the answer to its permission request."""


def _with_answers(message: Any) -> Any:
    """The message as it was sent, with the answers to permission requests that follow from the states of their calls.

    No chunk of AI SDK 6 has an answer: a page that has built such a message from its stream lacks it.
    """
    if not isinstance(message, dict):
        return cast("object", message)
    fields = cast("dict[str, Any]", message)
    parts = fields.get("parts")
    if not isinstance(parts, list):
        return fields
    return {**fields, "parts": [_with_answer(part) for part in cast("list[Any]", parts)]}


def _with_answer(part: Any) -> Any:
    if not isinstance(part, dict):
        return cast("object", part)
    fields = cast("dict[str, Any]", part)
    state, approval = fields.get("state"), fields.get("approval")
    if not (isinstance(state, str) and state in _ANSWERS and isinstance(approval, dict)):
        return fields
    return {**fields, "approval": {"approved": _ANSWERS[state], **cast("dict[str, Any]", approval)}}


# -- deciding


@checked
def plan_answer(stored: Sequence[UIMessage], request: ChatRequest) -> AnswerPlan:
    """Decide what a request makes of a chat.

    Args:
        stored: The messages of the chat; none for a new one.
        request: What the client sent; only its newest message is read.

    Raises:
        NotFoundError: It is about a message that the chat does not have (HTTP 404).
        ConflictError: It decides no open permission request, though it should (HTTP 409).
        ShapeError: Its newest message is a system message, or continues one that is not the chat's last (HTTP 400).
    """
    if request.trigger == "regenerate-message":
        return _regenerate(stored, request)
    newest = request.messages[-1]
    if newest.role == "user":
        return _submit(stored, newest)
    if newest.role == "assistant":
        return _continue(stored, newest)
    raise ShapeError("a page sends no system messages", json_path="$.messages")


def _regenerate(stored: Sequence[UIMessage], request: ChatRequest) -> AnswerPlan:
    """Regenerate the named answer, or that to the last message that the page still shows, or the last one."""
    prompt = request.messages[-1] if request.messages and request.messages[-1].role == "user" else None
    index = None if request.message_id is None else _index_of(stored, request.message_id)
    if index is None and prompt is not None:
        # The page regenerates an answer that was never stored. If its first request did not arrive, the prompt was
        # not stored either.
        return _submit(stored, prompt)
    if index is None and request.message_id is None:
        index = len(stored) - 1
    if index is None or index < 0:
        raise NotFoundError(f"there is no message {request.message_id or ''} to regenerate")
    end = index + 1 if stored[index].role == "user" else index
    return AnswerPlan(list(stored[:end]), None, list(stored[end:]))


def _submit(stored: Sequence[UIMessage], newest: UIMessage) -> AnswerPlan:
    """Answer a message of the user: a new one, an edited one, or the same one again."""
    newest = without_own_metadata(newest)
    index = _index_of(stored, newest.id)
    if index is None:
        return AnswerPlan([*stored, newest], None, [], is_changed=True)
    if stored[index].role != "user":
        raise ShapeError("this is the id of a message that is not the user's", json_path="$.messages")
    if has_same_content(stored[index], newest):
        # Sent twice, or regenerated: the message stays, its answer is made again.
        return AnswerPlan(list(stored[: index + 1]), None, list(stored[index + 1 :]))
    return AnswerPlan([*stored[:index], newest], None, list(stored[index:]), is_changed=True)


def _continue(stored: Sequence[UIMessage], newest: UIMessage) -> AnswerPlan:
    """Continue the last answer with the client's approvals and outcomes."""
    index = _index_of(stored, newest.id)
    if index is None:
        raise NotFoundError(f"there is no message {newest.id} to continue")
    if index != len(stored) - 1 or stored[index].role != "assistant":
        raise ShapeError("only the last message can continue", json_path="$.messages")
    _check_decisions(stored[index], newest)
    merged = merge_client_results(stored[index], newest)
    _check_undecided(merged)
    if merged == stored[index]:
        _check_repeated(newest)
    is_changed = merged != stored[index]
    if is_changed:
        merged = with_decisions(stored[index], merged)
    return AnswerPlan([*stored[:index], merged], merged, [], is_changed=is_changed)


def has_decision(request: ChatRequest) -> bool:
    """Whether the request answers a permission request."""
    newest = request.messages[-1] if request.messages and request.trigger == "submit-message" else None
    if newest is None or newest.role != "assistant":
        return False
    return any(part.state == "approval-responded" for part in _tool_parts(newest))


def _check_decisions(stored: UIMessage, sent: UIMessage) -> None:
    """Raise ConflictError for a decision about a permission request that the stored message does not have."""
    known = {_request_of(part) for part in _tool_parts(stored)}
    for part in _tool_parts(sent):
        if part.state == "approval-responded" and _request_of(part) not in known:
            raise ConflictError(f"there is no open permission request {_approval_id(part)}")


def _check_undecided(message: UIMessage) -> None:
    """Raise ConflictError for a message with an open permission request: the answer continues once all are decided.

    What nobody has decided would be denied by it.
    """
    for part in _tool_parts(message):
        if part.state == "approval-requested":
            raise ConflictError(f"the permission request {_approval_id(part)} is still open: allow or deny it first")


def _check_repeated(sent: UIMessage) -> None:
    """Raise ConflictError for a message that brings nothing new, and decides a permission request.

    A page sends such a message twice if its connection breaks; a tool that was allowed once must not run again.
    Without permission requests it is a page that lets the answer continue after the outputs of its calls.
    """
    for part in _tool_parts(sent):
        if part.state == "approval-responded":
            raise ConflictError(f"the permission request {_approval_id(part)} was answered before")


def _tool_parts(message: UIMessage) -> list[ToolPart]:
    return [part for part in message.parts if isinstance(part, ToolUIPart | DynamicToolUIPart)]


def _request_of(part: ToolPart) -> tuple[str, str]:
    return part.tool_call_id, _approval_id(part)


def _approval_id(part: ToolPart) -> str:
    return part.approval.id if part.approval else ""


def merge_client_results(stored: UIMessage, sent: UIMessage) -> UIMessage:
    """The stored message with the client's approvals and outcomes of open tool calls, and nothing else that it sent."""
    calls = {part.tool_call_id: part for part in _tool_parts(sent)}
    return replace(stored, parts=tuple(_merge_part(part, calls) for part in stored.parts))


def _merge_part(part: UIMessagePart, sent_calls: dict[str, ToolPart]) -> UIMessagePart:
    if not isinstance(part, ToolUIPart | DynamicToolUIPart):
        return part
    sent = sent_calls.get(part.tool_call_id)
    if sent is None:
        return part
    if part.state == "approval-requested":
        return _merge_approval(part, sent)
    # The client may give the outcome of a call only while the call waits for one, and never for a provider's own tool.
    if part.state == "input-available" and part.provider_executed is not True:
        return _merge_outcome(part, sent)
    return part


def _merge_approval(part: ToolPart, sent: ToolPart) -> ToolPart:
    """The stored permission request with the client's yes or no and its reason."""
    stored, response = part.approval, sent.approval
    if sent.state != "approval-responded" or not stored or not response or stored.id != response.id:
        return part
    approval = replace(stored, approved=response.approved, reason=response.reason)
    return replace(part, state="approval-responded", approval=approval)


def _merge_outcome(part: ToolPart, sent: ToolPart) -> ToolPart:
    if sent.state == "output-available" and sent.preliminary is not True:
        return replace(part, state="output-available", output=sent.output)
    if sent.state == "output-error":
        return replace(part, state="output-error", error_text=sent.error_text)
    return part


def _index_of(messages: Sequence[UIMessage], message_id: str) -> int | None:
    return next((index for index, message in enumerate(messages) if message.id == message_id), None)
