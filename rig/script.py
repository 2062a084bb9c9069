"""The conversation that every agent is put through, in the words of its own shell tool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PROMPT = "Try the shell, please"


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """What the model says it used: `cached` beside `input`, `reasoning` inside `output`."""

    input: int
    cached: int
    output: int
    reasoning: int


@dataclass(frozen=True, kw_only=True)
class Call:
    """A shell call, what its output holds, and whether it fails."""

    id: str
    tool: str
    input: dict[str, Any]
    output: str
    namespace: str | None = None
    """Where Codex groups the tools of a server."""
    fails: bool = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer of the model: reasoning, then text, then calls."""

    tokens: Tokens
    number: int = 0
    reasoning: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()


FAILING = "echo alas >&2; exit 3"


def conversation(
    tool: str,
    argument: str,
    extra: dict[str, Any],
    *,
    failing: str = FAILING,
    in_list: bool = False,
    at_once: bool = True,
    asked_again: int = 0,
) -> list[Answer]:
    """The answers for an agent whose shell tool takes the command as `argument`, or a list of commands.

    `at_once`: it makes all calls of an answer, and not only the first. `asked_again`: how many more answers it wants.
    """

    def call(name: str, command: str, output: str, fails: bool = False) -> Call:
        given: Any = [command] if in_list else command
        return Call(id=f"call_{name}", tool=tool, input={argument: given, **extra}, output=output, fails=fails)

    def tokens(number: int, reasoning: int = 0) -> Tokens:
        return Tokens(input=100 + number, cached=1000 * number, output=40 + number, reasoning=reasoning)

    both = (call("left", "echo to the left", "to the left"), call("right", "echo to the right", "to the right"))
    return [
        Answer(
            number=1,
            reasoning="First a simple command.",
            text="I begin with a greeting.",
            calls=(call("greet", "echo good morning", "good morning"),),
            tokens=tokens(1, reasoning=9),
        ),
        Answer(number=2, calls=(call("fail", failing, "alas", fails=True),), tokens=tokens(2)),
        Answer(
            number=3,
            text="Now two at once.",
            calls=both if at_once else both[:1],
            tokens=tokens(3),
        ),
        Answer(number=4, reasoning="That was all.", text="Everything was tried.", tokens=tokens(4, reasoning=5)),
        *(Answer(number=5 + more, text="Nothing is left.", tokens=tokens(5 + more)) for more in range(asked_again)),
    ]
