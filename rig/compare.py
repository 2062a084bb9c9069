"""What turnlog read beside what the script says, aspect by aspect.

Both are brought to the same plain lists, so that a difference shows as two values. What an agent adds on its own
(its developer messages, the words around a command's output) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec
from clis import Cli
from script import Answer, Call

from turnlog.logs import SessionHistory
from turnlog.model import Message, ReasoningPart, RecordEvent, TextPart, ToolCallPart, UnknownPart
from turnlog.model.parts import ToolState

FAILED_EXIT = 3

_AROUND = re.compile(
    r"\A(?:Output: |Error executing tool \w+: Error \(exit code \d+\): )"
    r"|\A\{\"output\": \"|\", \"exit_code\": \d+, \"error\": null\}\Z"
    r"|\A`|`\Z"
)
"""What agents put around an output."""

_LOST = "(empty)"
"""What Qwen Code writes in the place of an output that it has not got."""

Listed: TypeAlias = list[Any]
Aspect: TypeAlias = tuple[Callable[[Cli, list[Answer]], Listed], Callable[[Cli, list[Answer], list[Message]], Listed]]


def compare(
    cli: Cli, answers: list[Answer], sent: list[dict[str, Any]], history: SessionHistory
) -> dict[str, tuple[Listed, Listed] | None]:
    """Aspect -> what was expected and what was found; None where they are equal. `sent` are the agent's requests."""
    messages = [message for message in history.messages if message.role in ("user", "assistant")]
    if cli.loses_outputs:
        answers = _without_lost(answers, sent)
    pairs = {name: (wanted(cli, answers), found(cli, answers, messages)) for name, (wanted, found) in _ASPECTS.items()}
    return {name: None if pair[0] == pair[1] else pair for name, pair in pairs.items()}


def _without_lost(answers: list[Answer], sent: list[dict[str, Any]]) -> list[Answer]:
    """The script as the agent told it the model: a command whose output it lost has this line in its place."""
    told = {
        message.get("tool_call_id"): _lines_of(message.get("content"))
        for body in sent
        for message in body.get("messages", [])
        if message.get("role") == "tool"
    }

    def as_told(call: Call) -> Call:
        lines = told.get(call.id, [])
        return replace(call, output=_LOST) if _LOST in lines and call.output not in lines else call

    return [replace(answer, calls=tuple([as_told(call) for call in answer.calls])) for answer in answers]


def _lines_of(content: Any) -> list[str]:
    """The lines of a text, or of the texts of parts, without what agents put around them."""
    texts = [content] if isinstance(content, str) else [part.get("text") or "" for part in content or ()]
    return [_AROUND.sub("", line) for text in texts for line in text.splitlines()]


def unknown_kinds(history: SessionHistory) -> list[str]:
    """Kinds of records and parts that this turnlog has never heard of."""
    records = {event.kind for event in history.events if isinstance(event, RecordEvent) and not event.known}
    parts = {part.kind for message in history.messages for part in message.parts if isinstance(part, UnknownPart)}
    return sorted(records | parts)


def _order_wanted(cli: Cli, answers: list[Answer]) -> Listed:
    return [("user", [("text", cli.prompt)]), *(("assistant", _told(cli, answer)) for answer in answers)]


def _told(cli: Cli, answer: Answer) -> Listed:
    words = [("reasoning", answer.reasoning if cli.keeps_thoughts else ""), ("text", answer.text)]
    return [word for word in words if word[1]] + [("call", call.tool) for call in answer.calls]


_HIDDEN = ("reasoning", "")


def _order_found(cli: Cli, answers: list[Answer], messages: list[Message]) -> Listed:
    named = [(message.role, [_named(part) for part in message.parts if not _is_added(part)]) for message in messages]
    # Some agents that do not log thoughts log that there were some.
    return (
        named if cli.keeps_thoughts else [(role, [part for part in parts if part != _HIDDEN]) for role, parts in named]
    )


def _is_added(part: Any) -> bool:
    """Whether the agent put the text before or after the prompt, as Copilot CLI does with the time."""
    return isinstance(part, TextPart) and part.is_synthetic


def _named(part: Any) -> tuple[str, str]:
    if isinstance(part, TextPart | ReasoningPart):
        return part.type, part.text.strip()
    return ("call", part.tool_name) if isinstance(part, ToolCallPart) else (part.type, "")


def _inputs_found(cli: Cli, answers: list[Answer], messages: list[Message]) -> Listed:
    return [msgspec.json.decode(call.input) if call.input else None for call in _calls(messages)]


def _outputs_found(cli: Cli, answers: list[Answer], messages: list[Message]) -> Listed:
    """The scripted output where the call's only result has it as a line; else all that is there."""
    lines = [[line for result in call.results for line in result.output_text.splitlines()] for call in _calls(messages)]
    wanted = [call.output for call in _scripted(answers)]
    wanted += [""] * (len(lines) - len(wanted))
    return [
        output if sum(_AROUND.sub("", line) == output for line in found) == 1 else "\n".join(found)
        for output, found in zip(wanted, lines, strict=False)
    ]


def _states_wanted(cli: Cli, answers: list[Answer]) -> Listed:
    done = ToolState.OUTPUT_AVAILABLE
    code = FAILED_EXIT if cli.knows_exit_codes else 0
    return [(cli.failed, code) if call.fails else (done, 0) for call in _scripted(answers)]


def _states_found(cli: Cli, answers: list[Answer], messages: list[Message]) -> Listed:
    """State and exit code; not every agent writes down the exit code 0."""
    return [(call.state, call.results[-1].exit_code or 0 if call.results else None) for call in _calls(messages)]


def _tokens_wanted(cli: Cli, answers: list[Answer]) -> Listed:
    tokens = [answer.tokens for answer in answers if cli.counts_calls]
    return [(each.input, each.cached, each.output, each.reasoning if cli.tells_reasoning else 0) for each in tokens]


def _tokens_found(cli: Cli, answers: list[Answer], messages: list[Message]) -> Listed:
    """Of each step: input, read from cache, output with reasoning, reasoning."""
    usages = [message.usage for message in messages if message.usage]
    return [
        (each.input, each.cache_read, (each.output or 0) + (each.reasoning or 0), each.reasoning or 0)
        for each in usages
    ]


def _scripted(answers: list[Answer]) -> list[Call]:
    return [call for answer in answers for call in answer.calls]


def _calls(messages: list[Message]) -> list[ToolCallPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolCallPart)]


_ASPECTS: dict[str, Aspect] = {
    "order": (_order_wanted, _order_found),
    "inputs": (lambda cli, answers: [call.input for call in _scripted(answers)], _inputs_found),
    "outputs": (lambda cli, answers: [call.output for call in _scripted(answers)], _outputs_found),
    "states": (_states_wanted, _states_found),
    "tokens": (_tokens_wanted, _tokens_found),
}
