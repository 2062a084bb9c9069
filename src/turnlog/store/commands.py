"""The head of a command: the program that a shell call runs, with its subcommand, so that like calls count together.

`cd shop && CI=1 timeout 60 npm test -- --watch` has the head `npm test`. A head never contains arguments, which may be
secrets. It is an approximation: of several commands only the first one counts that does more than prepare another.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET

from turnlog.model import ToolCallPart, ToolKind

_LONGEST = 400
"""Characters of a command that are looked at: the head of a script is at its beginning."""

_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")

_PROGRAM = re.compile(r"[A-Za-z0-9_][\w.+-]{0,39}")

_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:-]{0,23}")

_PREPARATIONS: Final = frozenset(("cd", "export", "set", "source", ".", "pushd", "popd", "echo", "true", "mkdir"))
"""Programs that only prepare the command after them, if there is one."""

_WRAPPERS: Final = frozenset(("sudo", "env", "time", "timeout", "nohup", "nice", "exec", "command", "xargs"))
"""Programs that run the command in their arguments."""

_WRAPPER_ARGUMENT = re.compile(r"-\S*|\d+(?:\.\d+)?[smhd]?")

_WITH_SUBCOMMANDS: Final = frozenset(
    (
        *("git", "gh", "npm", "pnpm", "yarn", "npx", "bun", "deno", "cargo", "rustup", "go", "docker", "podman"),
        *("kubectl", "helm", "terraform", "pip", "uv", "uvx", "poetry", "make", "just", "gradle", "mvn", "dotnet"),
        *("brew", "apt", "apt-get", "systemctl", "aws", "gcloud", "az", "bundle", "rails", "mix", "swift", "flutter"),
    )
)

_SCRIPT_RUNNERS: Final = re.compile(r"(?:python|node)[\d.]*")


class _Command(msgspec.Struct):
    """The fields of an input that may contain a command; all others are skipped."""

    command: Any = None
    cmd: Any = None
    commands: Any = None
    """A list of command lines."""


_decoder = msgspec.json.Decoder(_Command)


def call_head(part: ToolCallPart) -> str | None:
    """The head of the command that a call runs; None if it runs none, or none that its input names."""
    if part.kind is not ToolKind.EXECUTE or part.input is UNSET:
        return None
    try:
        fields = _decoder.decode(part.input)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    for value in (fields.command, fields.cmd, _lines(fields.commands)):
        text = _joined(cast("list[Any]", value)) if isinstance(value, list) else value
        if isinstance(text, str) and text.strip():
            return command_head(text)
    return None


def _lines(commands: Any) -> str | None:
    if not isinstance(commands, list):
        return None
    return "\n".join(line for line in cast("list[Any]", commands) if isinstance(line, str))


def _joined(words: list[Any]) -> str:
    line = [word for word in words if isinstance(word, str)]
    return line[2] if len(line) == 3 and line[1].startswith("-") and line[1].endswith("c") else " ".join(line)


def command_head(command: str) -> str | None:
    """The head of a command line; None if its first word names no program."""
    line, start, found = command[:_LONGEST], 0, None
    # Most often the first piece is the one, so the others are not looked for.
    while True:
        end = _SEPARATOR.search(line, start)
        head = _head(line[start : None if end is None else end.start()].split())
        if head is not None and head not in _PREPARATIONS:
            return head
        found = found or head
        if end is None:
            return found
        start = end.end()


def _head(words: list[str]) -> str | None:
    words = _unwrapped(words)
    if not words:
        return None
    program = words[0].strip("\"'()").replace("\\", "/").rpartition("/")[2]
    if not _PROGRAM.fullmatch(program):
        return None
    following = words[1] if len(words) > 1 else ""
    if following == "-m" and len(words) > 2 and _SCRIPT_RUNNERS.fullmatch(program) and _PROGRAM.fullmatch(words[2]):
        return f"{program} -m {words[2]}"
    if program in _WITH_SUBCOMMANDS and _SUBCOMMAND.fullmatch(following):
        return f"{program} {following}"
    return program


def _unwrapped(words: list[str]) -> list[str]:
    """The words from the program on, without assignments and programs that run it."""
    is_wrapped = False
    for index, word in enumerate(words):
        if word in _WRAPPERS:
            is_wrapped = True
        # A word without `=` needs no pattern to be known for no assignment.
        elif not ("=" in word and _ASSIGNMENT.fullmatch(word)) and not (
            is_wrapped and _WRAPPER_ARGUMENT.fullmatch(word)
        ):
            return words[index:] if index else words
    return words[-1:] if is_wrapped else []
