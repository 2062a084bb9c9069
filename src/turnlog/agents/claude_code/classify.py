"""What a text with role `user` really is: a prompt, a command, its output, a notification, the harness itself.

Claude Code sends all of these to the model as user messages and tells them apart by tags in the text and by flags
on the record. The order of the rules matters: flags first, then the tag that the text begins with.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from turnlog.model import Origin

INTERRUPTS = {
    "[Request interrupted by user]": "answer",
    "[Request interrupted by user for tool use]": "tool",
}
"""Markers that stand in the place of a user's text when the user pressed Esc: what was stopped."""

WARM_UP = "Warmup"
"""The whole prompt of the sidechains that 2.0.x ran to fill the cache."""

TAGGED: tuple[tuple[str, Origin], ...] = (
    ("<task-notification>", Origin.NOTIFICATION),
    ("<command-name>", Origin.COMMAND),
    ("<command-message>", Origin.COMMAND),
    ("<local-command-stdout>", Origin.COMMAND_OUTPUT),
    ("<local-command-stderr>", Origin.COMMAND_OUTPUT),
    ("<local-command-caveat>", Origin.HARNESS),
    ("<post-tool-use-hook>", Origin.HARNESS),
    ("<session-start-hook>", Origin.HARNESS),
    ("<user-prompt-submit-hook>", Origin.HARNESS),
    ("<bash-input>", Origin.SHELL),
    ("<bash-stdout>", Origin.SHELL_OUTPUT),
    ("<bash-stderr>", Origin.SHELL_OUTPUT),
)
"""Opening tags, and what the text behind each is."""

_INJECTED = re.compile(
    r"\s*<(?P<tag>system-reminder|ide_opened_file|ide_selection|ide_diagnostics)\b[^>]*>.*?</(?P=tag)>\s*", re.DOTALL
)
_TAG = re.compile(r"<(?P<tag>[a-z-]+)>(?P<text>.*?)</(?P=tag)>", re.DOTALL)
_BOM = "\ufeff"
_FEEDBACK = "Stop hook feedback:\n"
"""What a hook says against stopping: flagged as the harness's since 2.1."""


class Command(NamedTuple):
    """What the user typed behind `/` or `!`."""

    name: str
    arguments: str


def origin_of_text(text: str) -> Origin:
    """The origin that a text's opening tag tells; a text without one is a prompt."""
    body = text.lstrip(_BOM + " \t\r\n")
    if body.startswith(_FEEDBACK):
        return Origin.HARNESS
    if not body.startswith("<"):
        return Origin.PROMPT
    return next((origin for tag, origin in TAGGED if body.startswith(tag)), Origin.PROMPT)


def split_injected(text: str) -> tuple[str, str]:
    """The wrappers that an editor or the harness glued in front of a text, and the text itself."""
    end = 0
    while match := _INJECTED.match(text, end):
        end = match.end()
    return text[:end], text[end:]


def tags_of(text: str) -> dict[str, str]:
    """The content of each tag in a text of tags, such as a notification; of two equal tags the first."""
    found: dict[str, str] = {}
    for match in _TAG.finditer(text):
        found.setdefault(match["tag"], match["text"].strip())
    return found


def inner_tags(text: str, tag: str) -> dict[str, str]:
    """The tags inside the outermost `<tag>…</tag>` of a text, whose last closing tag counts."""
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return tags_of(text[start + len(tag) + 2 : end if end > start else len(text)]) if start >= 0 else {}


def command_of(text: str, origin: Origin) -> Command | None:
    """The command in the text of a `COMMAND` or `SHELL` message."""
    tags = tags_of(text)
    if origin is Origin.SHELL:
        return Command("!", tags.get("bash-input", ""))
    if origin is Origin.COMMAND:
        return Command(tags.get("command-name", ""), tags.get("command-args", ""))
    return None
