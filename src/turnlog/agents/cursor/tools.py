"""Cursor's tools by kind, and the texts around what the user typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

from turnlog.agents.cursor import NAME
from turnlog.agents.decoding import aware
from turnlog.model import TextPart, ToolKind

TOOL_KINDS: dict[str, ToolKind] = {
    "ApplyPatch": ToolKind.EDIT,
    "AskQuestion": ToolKind.ASK,
    "AwaitShell": ToolKind.EXECUTE,
    "CreatePlan": ToolKind.THINK,
    "Delete": ToolKind.DELETE,
    "Edit": ToolKind.EDIT,
    "EditNotebook": ToolKind.EDIT,
    "Glob": ToolKind.SEARCH,
    "Grep": ToolKind.SEARCH,
    "LS": ToolKind.READ,
    "MultiEdit": ToolKind.EDIT,
    "MultiStrReplace": ToolKind.EDIT,
    "Read": ToolKind.READ,
    "ReadLints": ToolKind.READ,
    "SemanticSearch": ToolKind.SEARCH,
    "Shell": ToolKind.EXECUTE,
    "StrReplace": ToolKind.EDIT,
    "Subagent": ToolKind.SUBAGENT,
    "SwitchMode": ToolKind.SWITCH_MODE,
    "Task": ToolKind.SUBAGENT,
    "TodoWrite": ToolKind.THINK,
    "WebFetch": ToolKind.FETCH,
    "WebSearch": ToolKind.FETCH,
    "Write": ToolKind.EDIT,
    "apply_patch": ToolKind.EDIT,
    "ask_question": ToolKind.ASK,
    "codebase_search": ToolKind.SEARCH,
    "create_plan": ToolKind.THINK,
    "delete_file": ToolKind.DELETE,
    "edit_file": ToolKind.EDIT,
    "edit_notebook": ToolKind.EDIT,
    "fetch_rules": ToolKind.READ,
    "file_search": ToolKind.SEARCH,
    "glob_file_search": ToolKind.SEARCH,
    "grep": ToolKind.SEARCH,
    "grep_search": ToolKind.SEARCH,
    "list_dir": ToolKind.READ,
    "multi_str_replace": ToolKind.EDIT,
    "read_file": ToolKind.READ,
    "read_lints": ToolKind.READ,
    "ripgrep_raw_search": ToolKind.SEARCH,
    "run_terminal_cmd": ToolKind.EXECUTE,
    "run_terminal_command": ToolKind.EXECUTE,
    "search_replace": ToolKind.EDIT,
    "semantic_search_full": ToolKind.SEARCH,
    "switch_mode": ToolKind.SWITCH_MODE,
    "task": ToolKind.SUBAGENT,
    "todo_write": ToolKind.THINK,
    "web_fetch": ToolKind.FETCH,
    "web_search": ToolKind.FETCH,
    "write": ToolKind.EDIT,
}
"""Names of the program for the terminal, then of the editor, which may end in `_v2`. Others are of kind `other`."""

_VERSION = re.compile(r"_v\d+$")


def kind_of(name: str) -> ToolKind:
    """What a tool does."""
    return TOOL_KINDS.get(_VERSION.sub("", name), ToolKind.OTHER)


# -- prompts

_TYPED = re.compile(r"<user_query>\s?(?P<text>.*?)\s?</user_query>", re.DOTALL)
_TIME = re.compile(r"<timestamp>(?P<time>.*?)</timestamp>\s*", re.DOTALL)
_WRITTEN = re.compile(
    r"\w+, (?P<month>[A-Z][a-z]{2})\w* (?P<day>\d{1,2}), (?P<year>\d{4}),? (?P<hour>\d{1,2}):(?P<minute>\d{2})\s?"
    r"(?P<half>[AP]M) \(UTC(?P<sign>[+-])?(?P<hours>\d{1,2})?(?::(?P<minutes>\d{2}))?\)"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def prompt_parts(text: str, message_id: str, first: int) -> Iterator[TextPart]:
    """The parts of a text of the role `user`, numbered from `first`: what was typed, and what Cursor put around it."""
    text = _TIME.sub("", text, count=1)
    place = 0
    for match in _TYPED.finditer(text):
        yield from _added(text[place : match.start()], message_id, first)
        first += bool(text[place : match.start()].strip())
        yield TextPart(id=f"{message_id}.{first}", text=match["text"])
        first += 1
        place = match.end()
    if place:
        yield from _added(text[place:], message_id, first)
    elif text:
        yield TextPart(id=f"{message_id}.{first}", text=text)


def _added(text: str, message_id: str, number: int) -> Iterator[TextPart]:
    if text.strip():
        yield TextPart(id=f"{message_id}.{number}", text=text.strip(), metadata={NAME: {"synthetic": True}})


def is_typed(text: str) -> bool:
    """Whether Cursor marks a part of a text as typed by the user."""
    return _TYPED.search(text) is not None


def time_in(text: str) -> datetime | None:
    """The time that Cursor puts in front of a prompt, to the minute; None if there is none that can be read."""
    found = _TIME.search(text)
    return None if found is None else written_time(found["time"].strip())


def written_time(text: str) -> datetime | None:
    """The time in a text: `Tuesday, Sep 29, 2026, 9:14 PM (UTC+1)`, or as ISO 8601 has it."""
    try:
        return aware(datetime.fromisoformat(text))
    except ValueError:
        pass
    match = _WRITTEN.search(text)
    if match is None or match["month"] not in _MONTHS:
        return None
    hour = int(match["hour"]) % 12 + (12 if match["half"] == "PM" else 0)
    ahead = timedelta(hours=int(match["hours"] or 0), minutes=int(match["minutes"] or 0))
    try:
        zone = timezone(-ahead if match["sign"] == "-" else ahead)
        month = _MONTHS.index(match["month"]) + 1
        local = datetime(int(match["year"]), month, int(match["day"]), hour, int(match["minute"]), tzinfo=zone)
    except ValueError:
        return None
    return aware(local)


def time_of(milliseconds: object) -> datetime | None:
    """The time of a number of Unix milliseconds; None if it is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
