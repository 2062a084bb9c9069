"""Messages and results: prompts, answers, what tools returned, and what the program wrote in a person's place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Raw

from turnlog.agents.decoding import REPLACED
from turnlog.agents.droid import NAME
from turnlog.agents.droid.contents import call_part, message_part, result_of
from turnlog.agents.droid.fold_context import DroidContext
from turnlog.agents.droid.records import MESSAGES, DroidBlock, DroidMessage
from turnlog.model import ErrorEvent, Message, Origin, Part, TextPart
from turnlog.model.session import title_from

_TO_MODEL, _TO_USER = "llm_only", "user_only"
"""`visibility` of messages that only the model gets, and that only the user sees."""

_REMINDER = re.compile(r"\s*<system-reminder>")
"""How a text begins that Droid adds to what the model gets."""

_FAILURE = re.compile(r"(?:BYOK )?Error: (?:(?P<status>[1-5]\d\d)\b)?")
"""How a message to the user begins that reports a failed model call."""

_OWN_WORDS = "Exec ended early: "
"""How an answer begins that `droid exec` itself writes when it may not ask for a permission."""

_FACTS = ("visibility", "reasoning_effort", "interaction_mode")
"""Fields of a message that are kept as metadata."""


def read_message(context: DroidContext) -> None:
    """Read a message record: an answer, results of calls, a prompt, or what the program wrote."""
    message = _decoded(context)
    blocks = _blocks_of(message)
    # Blocks are those of Anthropic's Messages API, whatever API answered, so that one reader is enough.
    if message.role == "assistant":
        _read_answer(context, message, blocks)
        return
    numbered = list(enumerate(blocks))
    results = [(number, block) for number, block in numbered if block.type == "tool_result"]
    if results:
        at = context.record.timestamp
        context.add_results(
            [(block.tool_use_id or "", result_of(block, context.json, number, at)) for number, block in results]
        )
    others = [(number, block) for number, block in numbered if block.type != "tool_result"]
    if others or not results:
        _read_input(context, message, others, is_further=bool(results))


def _decoded(context: DroidContext) -> DroidMessage:
    raw = context.record.message
    if not isinstance(raw, Raw):
        context.report("a message without content", json_path="$.message")
        return DroidMessage()
    found = MESSAGES.decode(bytes(raw))
    if isinstance(found, str):
        context.report(found, json_path="$.message")
        return DroidMessage()
    for problem in found.problems:
        context.report(problem.reason, problem.severity, f"$.message{(problem.json_path or '').removeprefix('$')}")
    return found.record


def _blocks_of(message: DroidMessage) -> Sequence[DroidBlock]:
    if isinstance(message.content, str):
        return [DroidBlock(type="text", text=message.content)]
    return message.content or ()


def _metadata(context: DroidContext, message: DroidMessage, **facts: Any) -> dict[str, Any]:
    """The agent's own facts about a message, with the fields that are not known (R-C11)."""
    found = {name: getattr(message, name) for name in _FACTS} | facts
    known = {name: value for name, value in found.items() if value is not None}
    known |= (context.record.others or {}) | (message.others or {})
    return {NAME: known} if known else {}


# -- what a person or the program wrote


def _read_input(
    context: DroidContext, message: DroidMessage, blocks: list[tuple[int, DroidBlock]], *, is_further: bool
) -> None:
    """Read a message that no model wrote. One beside results in the same record has another id than these."""
    # The record's id is that of its results; the words beside them are a message of their own.
    identity = f"{context.record_id}.input" if is_further else context.record_id
    parts = tuple(message_part(block, f"{identity}.{number}", context.json, number, None) for number, block in blocks)
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    # A failed request leaves no record of an error: only this message to the user has its words.
    failure = _FAILURE.match(text) if message.visibility == _TO_USER else None
    if failure is not None:
        _add_failure(context, text, failure["status"])
        return
    origin = _origin_of(context, message, parts)
    if origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
        context.begin_turn()
        _set_title(context, text)
    context.add_message(
        Message(
            id=identity,
            role="user" if origin is not Origin.HARNESS else "developer",
            parts=parts,
            origin=origin,
            created_at=context.record.timestamp,
            metadata=_metadata(context, message),
        )
    )
    if is_further:
        # The record is counted as results.
        context.changes.counts.messages -= 1


def _origin_of(context: DroidContext, message: DroidMessage, parts: Sequence[Part]) -> Origin:
    if message.visibility in (_TO_MODEL, _TO_USER) or message.role not in ("user", ""):
        return Origin.HARNESS
    # 0.117.0 has no `visibility` in what it adds in front of the first prompt.
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if texts and len(texts) == len(parts) and all(_REMINDER.match(text) for text in texts):
        return Origin.HARNESS
    if context.state.is_subagent and not context.state.turn:
        return Origin.SUBAGENT_PROMPT
    return Origin.PROMPT


def _add_failure(context: DroidContext, text: str, status: str | None) -> None:
    context.state.has_failed = True
    context.add_event_in_chain(
        ErrorEvent(
            id=context.position_id,
            created_at=context.record.timestamp,
            error_text=text,
            kind="api",
            status=None if status is None else int(status),
        )
    )


def _set_title(context: DroidContext, prompt: str) -> None:
    """Make the first prompt the session's title, and what the log calls it, if that is something else."""
    state, title = context.state, title_from(prompt)
    if state.is_titled or not title:
        return
    state.is_titled = True
    context.session.titles["prompt"] = title
    # Up to its first change the title in the log is the beginning of the prompt.
    given = " ".join((state.title or "").split()).removesuffix("...").removesuffix("…").rstrip()
    if given and not " ".join(prompt.split()).startswith(given):
        context.session.titles["generated"] = state.title or ""


# -- answers of the model


def _read_answer(context: DroidContext, message: DroidMessage, blocks: Sequence[DroidBlock]) -> None:
    """Read an answer: one step, with its parts in order. Its tokens are known only in the session's total."""
    identity = context.record_id
    parts = tuple(_answer_parts(context, message, blocks, identity))
    # No model wrote this answer, so that it is no step.
    is_own = len(parts) == 1 and isinstance(parts[0], TextPart) and parts[0].text.startswith(_OWN_WORDS)
    if not is_own:
        context.state.step += 1
    context.add_message(
        Message(
            id=identity,
            role="assistant",
            parts=parts,
            origin=Origin.HARNESS if is_own else None,
            created_at=context.record.timestamp,
            model=message.model_id,
            response_id=message.openai_message_id,
            metadata=_metadata(context, message),
        ),
        step=None if is_own else context.state.step,
    )


def _answer_parts(
    context: DroidContext, message: DroidMessage, blocks: Sequence[DroidBlock], identity: str
) -> Iterator[Part]:
    for number, block in enumerate(blocks):
        part_id = f"{identity}.{number}"
        if block.type == "tool_use":
            part, is_replaced = call_part(block, part_id, context.record.timestamp)
            if is_replaced:
                context.report(REPLACED, "note", f"$.message.content[{number}].input")
            context.note_call(part, identity)
            yield part
        else:
            yield message_part(block, part_id, context.json, number, message.model_id)
