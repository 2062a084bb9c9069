"""The facts in an agent's command line, read with a table of its options.

They are preliminary, because a prompt may come through a pipe and a model from a settings file: what the session's log
says later wins. An option that is not in the table counts as one without a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

import msgspec


def words(*lines: str) -> frozenset[str]:
    """The words in these lines."""
    return frozenset(" ".join(lines).split())


SESSION: Final = "{session}"
"""The placeholder for a session's id in a form."""


class CommandForm(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of an agent. Options are written as they are typed: `-m`, `--model`."""

    program: str
    packages: tuple[str, ...] = ()
    """The npm package with which `npx` runs it."""
    subcommands: tuple[tuple[str, ...], ...] = ((),)
    """Subcommands that are followed by a prompt, the longest first."""
    resumes: frozenset[tuple[str, ...]] = frozenset()
    """Subcommands whose first argument is the session to resume."""
    newest: frozenset[str] = frozenset()
    """Options that resume the newest session: no session id follows the subcommand."""
    joins_words: bool = False
    """All arguments together are the prompt, and not only the first one."""
    prompt: frozenset[str] = frozenset()
    """Options that have the prompt as their value."""
    model: frozenset[str] = frozenset()
    system_prompt: frozenset[str] = frozenset()
    session: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()
    """Options with a value that is not needed here."""
    lists: frozenset[str] = frozenset()
    """Options with any number of values."""
    resume: tuple[str, ...] = ()
    """The words between the program and the id of the session to resume; empty if it cannot resume."""
    prompted: tuple[str, ...] = ()
    """Arguments to resume a session (`SESSION`) without a terminal, with a prompt on standard input."""
    branch: str = ""
    """A regular expression for what turnlog's session ids have after the id that the program knows."""

    def id_of(self, external_id: str) -> str | None:
        """The id that the program knows; None if it would be read as an option, which no agent's own id is."""
        own = re.sub(f"(?:{self.branch})$", "", external_id)
        return None if own.startswith("-") else own


class CommandFacts(NamedTuple):
    """The facts in a command line. None: the line does not say."""

    prompt: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    session: str | None = None
    """External id of the session that is resumed."""


_LAUNCHERS: Final = words(
    "bun bunx chrt dlx env exec ionice nice nohup npm npx pnpm setsid stdbuf sudo time timeout x",
    "yarn",
)
"""Programs that run another program, which is among their arguments."""


def find_command(forms: Mapping[str, CommandForm], command: Sequence[str]) -> tuple[str, CommandFacts] | None:
    """The name of the form whose program a command starts, also through a launcher, and the facts in the command.

    None if the command starts none of them.
    """
    # After `npx` or `sudo` any word may be the program. Elsewhere only the first word is, because a prompt may contain
    # the name of an agent.
    is_launched = bool(command) and _stem(command[0]) in _LAUNCHERS
    for number, word in enumerate(command if is_launched else command[:1]):
        for name, form in forms.items():
            if _stem(word) == form.program or _package_of(word) in form.packages:
                return name, read_command(form, command[number + 1 :])
    return None


def resume_command(form: CommandForm, external_id: str) -> list[str] | None:
    """The command that resumes a session; None if the agent cannot."""
    session = form.id_of(external_id)
    if not form.resume or session is None:
        return None
    return [form.program, *form.resume, session]


def prompted_command(form: CommandForm, external_id: str) -> list[str] | None:
    """The command that answers a prompt from standard input in a session; None if the agent cannot."""
    session = form.id_of(external_id)
    if not form.prompted or session is None:
        return None
    return [form.program, *(session if word == SESSION else word for word in form.prompted)]


def read_command(form: CommandForm, arguments: Sequence[str]) -> CommandFacts:
    """The facts in the arguments of an agent's program."""
    found: dict[str, str] = {}
    plain: list[str] = []
    for option, value in _split(form, arguments):
        if option is None:
            plain.append(value)
        else:
            found |= {name: value for name in CommandFacts._fields if option in getattr(form, name)}
    session = _take_words(form, plain)
    # In `codex resume --last "prompt"` the next word is not a session.
    if session is not None and form.newest.intersection(arguments):
        plain.insert(0, session)
    elif session is not None:
        found.setdefault("session", session)
    if plain and plain != ["-"]:
        found.setdefault("prompt", " ".join(plain) if form.joins_words else plain[0])
    return CommandFacts(**found)


def _split(form: CommandForm, arguments: Sequence[str]) -> Iterator[tuple[str | None, str]]:
    """Split arguments into options with their values, and other words."""
    valued = form.prompt | form.model | form.system_prompt | form.session | form.other
    waiting: str | None = None
    listing = False
    for number, argument in enumerate(arguments):
        if argument == "--":
            yield from ((None, word) for word in arguments[number + 1 :])
            return
        if waiting is not None:
            yield waiting, argument
            waiting = None
        elif argument.startswith("-") and argument != "-":
            name, equals, value = argument.partition("=")
            # In `--allowedTools Bash Edit "prompt"` the list has no end mark: all words before the next option are
            # values.
            listing = name in form.lists and not equals
            if equals:
                yield name, value
            elif name in valued:
                waiting = name
        elif not listing:
            yield None, argument


def _take_words(form: CommandForm, plain: list[str]) -> str | None:
    """Remove the subcommand and the session that it names from the words."""
    subcommand = next((each for each in form.subcommands if tuple(plain[: len(each)]) == each), ())
    del plain[: len(subcommand)]
    if subcommand in form.resumes and plain:
        return plain.pop(0)
    return None


def _stem(word: str) -> str:
    name = PurePath(word.replace("\\", "/")).name
    return name.removesuffix(".exe").removesuffix(".cmd")


def _package_of(word: str) -> str:
    """The name of an npm package without its version: `@openai/codex@latest`."""
    at = word.rfind("@")
    return word[:at] if at > 0 else word
