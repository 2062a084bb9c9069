"""What the events of hooks say, for the tables of the agents' modules (`hooked.Hooks`)."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.decoding import clean_json
from turnlog.agents.hooked import Told, checksum
from turnlog.model.tools import ToolState

_TEXTS_KEPT = 8


def take_prompt(told: Told) -> None:
    """A prompt was sent."""
    if told.event.prompt:
        told.show_prompt(told.event.prompt)
    else:
        told.add_fact()


def take_piece(told: Told) -> None:
    """A piece of an answer that is being shown. Its whole is shown again, as far as it has come."""
    event = told.event
    if event.message_id is None or event.delta is None:
        told.add_fact()
        return
    texts = told.state.texts
    pieces = texts.setdefault(event.message_id, {})
    pieces[event.index] = event.delta
    if len(texts) > _TEXTS_KEPT:
        del texts[next(iter(texts))]
    whole = "".join(pieces[index] for index in sorted(pieces))
    told.show_text(event.message_id, whole, done=event.final)


def take_call(told: Told) -> None:
    """A tool is about to run."""
    told.show_call(told.begin_call())


def take_result(told: Told) -> None:
    """A tool has run."""
    told.end_call("success", output_text(told.event.tool_response))


def take_failure(told: Told) -> None:
    """A tool has failed, or was stopped."""
    told.end_call("aborted" if told.event.is_interrupt else "error", output_text(told.event.error))


def take_question(told: Told) -> None:
    """A call waits for leave to run."""
    told.add_fact()
    call_id = told.call_id()
    if call_id is not None:
        told.show_call(call_id, state=ToolState.APPROVAL_REQUESTED)


def take_stop(told: Told) -> None:
    """The agent has stopped; what it said last may not have been shown before."""
    said = told.event.last_assistant_message
    if said and said.strip() != told.state.answered.strip():
        told.show_text(told.event.turn_id or told.event.prompt_id or checksum(said), said)
    told.add_fact()


_TEXTS = ("stdout", "stderr", "output", "content", "text", "llmContent", "error", "message")
"""Fields of an output that hold what a reader sees, where it is an object."""


def output_text(output: Raw | UnsetType) -> str:
    """What can be read of a tool's output: its text, that of its fields, else its JSON."""
    if output is UNSET:
        return ""
    try:
        value = msgspec.json.decode(clean_json(bytes(output)))
    except msgspec.MsgspecError:
        return bytes(output).decode(errors="replace")
    return _text_of(value) or bytes(output).decode(errors="replace")


def _text_of(value: Any) -> str:
    match value:
        case str():
            return value
        case dict():
            fields = cast("dict[str, Any]", value)
            found = [_text_of(fields.get(name)) for name in _TEXTS]
        case list():
            found = [_text_of(item) for item in cast("list[Any]", value)]
        case _:
            return ""
    return "\n".join(text for text in found if text)
