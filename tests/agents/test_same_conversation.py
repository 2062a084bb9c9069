"""One scripted conversation, run through the real command lines of several agents, is one history in our model.

What an agent does not record, or tells differently, stands in `DIFFERENCES`; everything else must be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from support.opencode_files import recorded, write_database
from turnlog.agents import agent as agent_named
from turnlog.model import Message, Origin, TextPart, ToolCallPart, ToolState
from turnlog.store import open_store
from turnlog.sync.syncer import sync

DATA = Path(__file__).parent.parent / "data"
PROMPT = "Give me a tour of the tools, please"

HOMES = {
    "claude-code": "claude_code/scenarios/basic",
    "codex": "codex/scenarios/basic",
    "gemini-cli": "gemini_cli/scenarios/basic",
}
AGENTS = [*HOMES, "opencode"]

DIFFERENCES = {
    ("gemini-cli", "a command fails"): ("success", 3),
    ("codex", "the answer recalls"): ["reasoning", "text"],
    ("gemini-cli", "the answer recalls"): ["reasoning", "text"],
    ("opencode", "the answer recalls"): ["reasoning", "text"],
}
"""Agent, moment -> what stands there instead.

Gemini CLI tells a command that failed as a success with an exit code. Claude Code's script has no thought
before the last answer: it ran without one.
"""


SAID = {"claude-code": (11, 0), "codex": (11, 0), "gemini-cli": (11, 4), "opencode": (7, 4)}
"""Tokens of text and of thought in the last answer's script; OpenCode's provider counts thoughts as output."""

_SPOKEN = {"reasoning", "text", "tool-call"}
PART_TYPES = {**dict.fromkeys(AGENTS, _SPOKEN), "opencode": {*_SPOKEN, "data"}}
"""What answers are made of. OpenCode also keeps which files each step changed."""


@dataclass(frozen=True)
class Moment:
    """Something that the script made happen: how its message is known, what is said of it, and what must be said."""

    name: str
    is_it: Callable[[Message], bool]
    tell: Callable[[Message], object]
    wanted: object


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def calls_of(message: Message) -> list[ToolCallPart]:
    return [part for part in message.parts if isinstance(part, ToolCallPart)]


def kinds_of(message: Message) -> list[str]:
    return [part.type for part in message.parts]


def inputs_of(message: Message) -> str:
    return " ".join(bytes(call.input).decode() if call.input else "" for call in calls_of(message))


def has_input(word: str, message: Message) -> bool:
    return word in inputs_of(message)


def says(word: str, message: Message) -> bool:
    return word in text_of(message)


def edits(message: Message) -> bool:
    return any(call.kind == "edit" for call in calls_of(message))


def calls_nothing_known(message: Message) -> bool:
    return any("such" in call.tool_name.lower() for call in calls_of(message))


def outcome(message: Message) -> object:
    result = calls_of(message)[0].results[-1]
    return (str(result.status), result.exit_code)


def outputs(message: Message) -> object:
    return [("one" in call.output_text, "two\ncafé 你好" in call.output_text) for call in calls_of(message)]


MOMENTS = (
    Moment("the user asks", lambda it: it.origin is Origin.PROMPT and says(PROMPT, it), kinds_of, ["text"]),
    Moment("think, speak, call", partial(has_input, "echo hello"), kinds_of, ["reasoning", "text", "tool-call"]),
    Moment("a command runs", partial(has_input, "echo hello"), lambda it: "hello" in calls_of(it)[0].output_text, True),
    Moment("a file is edited", edits, lambda it: it.role, "assistant"),
    Moment("a command fails", partial(has_input, "exit 3"), outcome, ("error", 3)),
    Moment("a thought before it", partial(has_input, "exit 3"), lambda it: kinds_of(it)[0], "reasoning"),
    Moment("two at once", partial(has_input, "echo one"), lambda it: len(calls_of(it)), 2),
    Moment("each has its output", partial(has_input, "echo one"), outputs, [(True, False), (False, True)]),
    Moment(
        "no such tool",
        calls_nothing_known,
        lambda it: (calls_of(it)[0].kind.value, calls_of(it)[0].state),
        ("other", ToolState.OUTPUT_ERROR),
    ),
    Moment("the end", partial(says, "Done: **hello**"), kinds_of, ["reasoning", "text"]),
    Moment("asked again", partial(says, "What did I ask before?"), lambda it: it.origin, Origin.PROMPT),
    Moment("the answer recalls", partial(says, "I remember: you asked for a tour of the tools."), kinds_of, ["text"]),
)


def home_of(agent: str, folder: Path) -> Path:
    if agent != "opencode":
        return DATA / HOMES[agent]
    return write_database(recorded("1.18.33", "basic-responses"), folder / "opencode" / "opencode.db").parent


def tour_of(agent: str, folder: Path) -> list[Message]:
    """The history of the tour, as a store has it."""
    path = folder / "store.db"
    sync(path, roots=[home_of(agent, folder)], agents=[agent_named(agent)])
    with open_store(path) as store:
        for session in store.sessions().items:
            messages = [placed.message for placed in store.messages(session.id)]
            asked = [message for message in messages if says(PROMPT, message)]
            if asked and asked[0].origin is Origin.PROMPT and any(says("I remember", message) for message in messages):
                return messages
    raise AssertionError(f"{agent} has no log of the tour")


@pytest.mark.parametrize("agent", AGENTS)
def test_the_same_conversation_is_the_same_history(agent: str, tmp_path: Path) -> None:
    """R-S15, R-S43: roles, order of parts, inputs, outputs, states and steps do not depend on who wrote the log."""
    messages = tour_of(agent, tmp_path)
    position = 0
    for moment in MOMENTS:
        found = next((at for at, message in enumerate(messages) if at >= position and moment.is_it(message)), None)
        assert found is not None, f"{moment.name} is missing behind message {position}"
        position = found
        assert moment.tell(messages[found]) == DIFFERENCES.get((agent, moment.name), moment.wanted), moment.name


@pytest.mark.parametrize("agent", AGENTS)
def test_each_model_call_is_one_step_with_what_it_used(agent: str, tmp_path: Path) -> None:
    """R-K4, R-C5: the script's usage of its second call: thirty or forty tokens out, and what came from the cache."""
    answers = [message for message in tour_of(agent, tmp_path) if message.role == "assistant"]
    assert all(message.usage is not None and message.usage.output for message in answers)
    assert {part.type for message in answers for part in message.parts} <= PART_TYPES[agent]
    recalled = next(message for message in answers if says("I remember", message))
    assert recalled.usage is not None
    used = recalled.usage
    assert (used.input, used.cache_read, used.output, used.reasoning) == (15, 3000, *SAID[agent])
