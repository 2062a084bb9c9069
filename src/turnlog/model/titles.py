"""The first words of a prompt that say what it is about, for its session's title.

A prompt may begin with what every such prompt begins with: tags that a program put around it, the sentence that hands
over a plan, a heading that says no more than that a plan follows. A text that was made one line loses no words by this.
"""

from __future__ import annotations

import json
import re
from typing import cast

_ASKS = "objective|goal|task|prompt|instructions|query|question|request"
"""Names of tags around the prompt itself."""

_WRAPPER = re.compile(rf"\s*<(?P<name>[A-Za-z]\w*[-_][\w-]*|{_ASKS}|context|message|user|image)(?:\s[^<>]*)?>")
"""A tag in front of a text. Names with `-` or `_` are no tags of HTML, which a prompt may well be about."""

_INTRODUCED = re.compile(rf"[^<>]*:\s*(?=<(?P<name>{_ASKS})>)")
"""What an agent says to a subagent before the prompt: Gemini CLI's `… the following user objective: <objective>`."""

_HANDOVER = re.compile(
    r"\s*(?:please\s+)?(?:implement|execute|carry\s+out|follow)\s+(?:the\s+following|the|this)\s+plan(?:\s+below)?\s*[:.]\s*(?=\S)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\s*#{1,6}[ \t]+(?P<words>[^\n]*?)[ \t#]*(?=\s#{1,6}\s|\n|$)")
"""A heading of Markdown, which ends with its line, or before the next one where the lines were joined."""

_LABEL = re.compile(r"(?:implementation\s+)?(?:plan|task)\s*(?::|\s[-\u2013\u2014]\s)\s*(?=\S)", re.IGNORECASE)
_SAYS_NOTHING = frozenset(
    ("plan", "implementation plan", "task", "context", "goal", "overview", "summary", "background", "instructions", "")
)


_SUBJECTS = (
    *("subject", "title", "summary", "task", "objective", "goal", "prompt", "query", "question"),
    *("description", "instructions", "instruction", "message", "text", "content", "body", "reason"),
)
"""Fields of a message between programs that say in words what it is about, the shortest first."""


_DEEPEST = 4
"""How many values within each other are looked through for words."""


def words_of_json(text: str) -> str | None:
    """What a JSON object, or a list of them, says in words, as a program hands over a task; None for anything else.

    An object without such words is known by its type.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _words_in(found, _DEEPEST) or _kind_of(found)


def _words_in(value: object, depth: int) -> str | None:
    """The first words in a value of JSON: those of a subject, in an object, a list of objects or JSON in a text."""
    if isinstance(value, list):
        words = (_words_in(each, depth - 1) for each in cast("list[object]", value)) if depth else ()
        return next(filter(None, words), None)
    if not isinstance(value, dict) or not depth:
        return None
    fields = cast("dict[str, object]", value)
    for name in _SUBJECTS:
        field = fields.get(name)
        if isinstance(field, str) and field.lstrip().startswith("{"):
            words = words_of_json(field)
        elif isinstance(field, str):
            words = field if field.strip() else None
        else:
            words = _words_in(field, depth - 1)
        if words:
            return words
    return None


def _kind_of(value: object) -> str | None:
    kind = cast("dict[str, object]", value).get("type") if isinstance(value, dict) else None
    return kind.replace("_", " ") if isinstance(kind, str) and "_" in kind else None


_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}
"""Opening quotation marks, and what closes them. `opencode run` puts a prompt of several words in quotes."""


def unquoted(text: str) -> str:
    """The text without quotation marks around all of it; marks around a part of it stay."""
    line = text.strip()
    end = _QUOTES.get(line[:1])
    if end is None or len(line) < 3 or not line.endswith(end) or end in line[1:-1]:
        return text
    return line[1:-1]


def first_words(text: str) -> str:
    """The text from its first meaningful words on; of a heading, only the heading. Empty if there are none."""
    text = unquoted(text)
    # Many messages between programs are JSON in a tag.
    if "{" in text:
        inner = _without_wrappers(text).strip()
        text = (words_of_json(inner) if inner.startswith(("{", "[")) else None) or text
    # Few prompts have a tag, and the pattern looks back from every colon of the others.
    if "<" in text and (introduced := _INTRODUCED.match(text)):
        text = text[introduced.end() :]
    text = _without_wrappers(text)
    if handover := _HANDOVER.match(text):
        text = text[handover.end() :]
    last = ""
    while heading := _HEADING.match(text):
        words = _LABEL.sub("", heading["words"].strip(), count=1).strip()
        if words.lower().rstrip(":") not in _SAYS_NOTHING:
            return words
        last, text = words or last, text[heading.end() :]
    return text if text.strip() else last


def _without_wrappers(text: str) -> str:
    names: set[str] = set()
    start = 0
    while wrapper := _WRAPPER.match(text, start):
        names.add(wrapper["name"])
        start = wrapper.end()
    text = text[start:]
    for name in names:
        text = text.replace(f"</{name}>", " ")
    return text
