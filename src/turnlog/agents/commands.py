"""What an agent's command line says of the run that it starts, told by a table of its options.

Only a first word on the matter: a prompt may come through a pipe, a model from a file of settings. What the session's
log says later counts more. An option that the table does not know is taken for one without a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

import msgspec


def words(*lines: str) -> frozenset[str]:
    """The words of these lines."""
    return frozenset(" ".join(lines).split())


SESSION: Final = "{session}"
"""Where the id of a session stands in a form."""


class CommandForm(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of an agent. Options are written as they are typed: `-m`, `--model`."""

    program: str
    packages: tuple[str, ...] = ()
    """Under which npm runs it without an installation."""
    subcommands: tuple[tuple[str, ...], ...] = ((),)
    """The words that stand before the prompt, the longest first."""
    resumes: frozenset[tuple[str, ...]] = frozenset()
    """Subcommands that name the session they go on with before the prompt."""
    newest: frozenset[str] = frozenset()
    """Options by which they name none."""
    joins_words: bool = False
    """All that is no option is the prompt, not only the first."""
    prompt: frozenset[str] = frozenset()
    """Options whose value is the prompt."""
    model: frozenset[str] = frozenset()
    system_prompt: frozenset[str] = frozenset()
    session: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()
    """Options with a value that does not matter here."""
    lists: frozenset[str] = frozenset()
    """Options with any number of values."""
    resume: tuple[str, ...] = ()
    """What stands between the program and the id of a session that is to go on; nothing where it cannot."""
    prompted: tuple[str, ...] = ()
    """Its arguments to go on with a session (`SESSION`) without a screen, with a prompt on standard input."""
    branch: str = ""
    """What a session's id may have behind the one that the program knows: a regular expression."""

    def id_of(self, external_id: str) -> str | None:
        """The id that the program knows; None where it would be taken for an option: agents do not make such ids."""
        own = re.sub(f"(?:{self.branch})$", "", external_id)
        return None if own.startswith("-") else own


class CommandFacts(NamedTuple):
    """What a command line says. None: nothing."""

    prompt: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    session: str | None = None
    """The agent's own id of the session that goes on."""


_LAUNCHERS: Final = words(
    "bun bunx chrt dlx env exec ionice nice nohup npm npx pnpm setsid stdbuf sudo time timeout x",
    "yarn",
)
"""Programs that start the one that is named among their arguments."""


def find_command(forms: Mapping[str, CommandForm], command: Sequence[str]) -> tuple[str, CommandFacts] | None:
    """The name of the form whose program a command starts, perhaps through a launcher, and what the command says.

    None for a command of none of them.
    """
    # Behind `npx` or `sudo` any word may be the program; elsewhere only the first is, so that a prompt which names an
    # agent starts none.
    is_launched = bool(command) and _stem(command[0]) in _LAUNCHERS
    for number, word in enumerate(command if is_launched else command[:1]):
        for name, form in forms.items():
            if _stem(word) == form.program or _package_of(word) in form.packages:
                return name, read_command(form, command[number + 1 :])
    return None


def resume_command(form: CommandForm, external_id: str) -> list[str] | None:
    """The command that goes on with a session; None where the agent cannot."""
    session = form.id_of(external_id)
    if not form.resume or session is None:
        return None
    return [form.program, *form.resume, session]


def prompted_command(form: CommandForm, external_id: str) -> list[str] | None:
    """The command that answers a prompt on its standard input in a session; None where the agent cannot."""
    session = form.id_of(external_id)
    if not form.prompted or session is None:
        return None
    return [form.program, *(session if word == SESSION else word for word in form.prompted)]


def read_command(form: CommandForm, arguments: Sequence[str]) -> CommandFacts:
    """What the arguments of an agent's program say."""
    found: dict[str, str] = {}
    plain: list[str] = []
    for option, value in _split(form, arguments):
        if option is None:
            plain.append(value)
        else:
            found |= {name: value for name in CommandFacts._fields if option in getattr(form, name)}
    session = _take_words(form, plain)
    # `codex resume --last "prompt"`: the word behind is no session then.
    if session is not None and form.newest.intersection(arguments):
        plain.insert(0, session)
    elif session is not None:
        found.setdefault("session", session)
    if plain and plain != ["-"]:
        found.setdefault("prompt", " ".join(plain) if form.joins_words else plain[0])
    return CommandFacts(**found)


def _split(form: CommandForm, arguments: Sequence[str]) -> Iterator[tuple[str | None, str]]:
    """Options with their values, and words (of no option)."""
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
            # `--allowedTools Bash Edit "prompt"` has no end that is marked: every word up to the next option is a
            # value.
            listing = name in form.lists and not equals
            if equals:
                yield name, value
            elif name in valued:
                waiting = name
        elif not listing:
            yield None, argument


def _take_words(form: CommandForm, plain: list[str]) -> str | None:
    """Take the subcommand away from the words, and the session that it names."""
    subcommand = next((each for each in form.subcommands if tuple(plain[: len(each)]) == each), ())
    del plain[: len(subcommand)]
    if subcommand in form.resumes and plain:
        return plain.pop(0)
    return None


def _stem(word: str) -> str:
    name = PurePath(word.replace("\\", "/")).name
    return name.removesuffix(".exe").removesuffix(".cmd")


def _package_of(word: str) -> str:
    """The name of a package without its version: `@openai/codex@latest`."""
    at = word.rfind("@")
    return word[:at] if at > 0 else word
