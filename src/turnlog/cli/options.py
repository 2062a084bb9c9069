"""Options and arguments that mean the same in every command: the store, a session's id, times, limits.

An id may be shortened as long as only one session has that beginning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from turnlog import paths
from turnlog.atomic_files import refuse_other_than_file
from turnlog.cli.short_ids import abbreviates
from turnlog.errors import NotFoundError, TurnlogError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from turnlog.model import Session
    from turnlog.store.base import Store


WRONG_USE = 2
"""Exit code of a command that lacks an argument."""

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def examples(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class EitherFlag(click.Option):
    """`--this/--no-this`, of which a command takes only one. Otherwise click takes the last one without a word."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Collect what is given in a list."""
        for names, value in ((self.opts, True), (self.secondary_opts, False)):
            parser.add_option(obj=self, opts=names, dest=self.name, action="append_const", const=value)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value of the one that is given."""
        given = cast("list[bool]", value) if isinstance(value, list) else []
        if len({*given}) > 1:
            raise click.UsageError(f"{self.opts[0]} and {self.secondary_opts[0]} exclude each other.", ctx)
        return super().type_cast_value(ctx, given[-1] if given else value)


class _StoreFile(click.Path):
    """The path of a store. An address of a database is refused, which would become folders of strange names."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if isinstance(value, str) and "://" in value:
            self.fail(
                f"{value!r} is no path of a file. A store in PostgreSQL is opened from Python, or served by "
                "`turnlog hub serve --database`.",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


def store_option(command: CommandT) -> CommandT:
    """`--store PATH`: the store to use, as `store_path`; by default the one that `turnlog db path` prints."""
    return click.option(
        "--store",
        "store_path",
        metavar="PATH",
        type=_StoreFile(),
        default=paths.database_path,
        callback=_remember_store,
        help="Use this store instead of your own.",
    )(command)


STORE = "turnlog.store"
"""Key of `Context.meta` with the path of the store, which error messages may need."""


def _remember_store(ctx: click.Context, _: click.Parameter, path: Path) -> Path:
    # Opening a pipe would wait for a writer for ever. What cannot even be looked at is reported by who opens it.
    with suppress(PermissionError):
        refuse_other_than_file(path, follow=True)
    ctx.meta[STORE] = path
    return path


def json_option(command: CommandT) -> CommandT:
    """`--json`: a document of `turnlog.cli.documents` instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")(command)


class WholeNumber(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error in plain words if the value is none."""
        if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?\d+\s*", value):
            self.fail(f"{value!r} is no whole number.", param, ctx)
        return super().convert(int(value), param, ctx)


class Name(click.Choice[str]):
    """One of several names."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """All names, and the one that is like what was typed."""
        from difflib import get_close_matches

        message, near = super().get_invalid_choice_message(value, ctx), get_close_matches(str(value), self.choices, 1)
        return f"{message} Did you mean {near[0]!r}?" if near else message


MOST_ROWS = 1_000_000_000
"""The highest `--limit`: more rows than any store has."""


def limit_option(
    default: int, *, least: int = 1, meaning: str = "List at most this many."
) -> Callable[[CommandT], CommandT]:
    """`--limit`: how many rows are listed."""
    return click.option("--limit", type=WholeNumber(least, MOST_ROWS), default=default, show_default=True, help=meaning)


UTC_DAYS: Final = "turnlog.utc_days"
"""Key of `Context.meta`: whether `--utc` was given."""


def utc_option(command: CommandT) -> CommandT:
    """`--utc`: days of UTC instead of this machine's, also for `--since` and `--until`; as `utc`."""
    return click.option(
        "--utc", is_flag=True, is_eager=True, callback=_remember_utc, help="Use days of UTC instead of your time zone."
    )(command)


def _remember_utc(ctx: click.Context, _: click.Parameter, utc: bool) -> bool:
    ctx.meta[UTC_DAYS] = utc
    return utc


def period_options() -> Callable[[CommandT], CommandT]:
    """`--since` and `--until`; days begin at midnight of this machine, or of UTC with `--utc`."""

    def decorate(command: CommandT) -> CommandT:
        command = click.option(
            "--until",
            type=When(end=True),
            callback=_check_period,
            help="Up to the end of this time (your time).",
        )(command)
        return click.option(
            "--since",
            type=When(),
            callback=_check_period,
            help="From this time on: 2026-11-20, 2026-11, an ISO time, today, 'last week', 7d, 12h.",
        )(command)

    return decorate


def _check_period(ctx: click.Context, param: click.Parameter, when: datetime | None) -> datetime | None:
    """A usage error for a period that ends before it begins, as soon as both its times are known."""
    known = {**ctx.params, str(param.name): when}
    since, until = known.get("since"), known.get("until")
    if since is not None and until is not None and until <= since:  # as `store.times.check_period`
        raise click.UsageError("The period ends before it begins: --until is before --since.", ctx)
    return when


class When(click.ParamType[datetime]):
    """A time as people write it. With `end`, a day or a month means its end."""

    name = "when"

    def __init__(self, *, end: bool = False, utc: bool = False) -> None:
        self._end = end
        self._utc = utc

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time, with a time zone; a usage error if the value is not a time."""
        if isinstance(value, datetime):
            return value
        from turnlog.store.times import moment_of

        is_utc = self._utc or (ctx is not None and bool(ctx.meta.get(UTC_DAYS)))
        try:
            return moment_of(str(value), end=self._end, zone=UTC if is_utc else None)
        except ValueError as error:
            self.fail(str(error), param, ctx)


CANDIDATES = 5
"""How many sessions the error for an ambiguous abbreviation lists."""

COMPLETIONS = 50


def open_existing(store_path: Path) -> Store:
    """The store. Raises NotFoundError if there is none, because a command that reads must not create one."""
    from turnlog.store import open_store

    if not store_path.exists():
        option = "" if store_path == paths.database_path() else f" --store {store_path}"
        raise NotFoundError(f"there is no store at {store_path} yet: `turnlog sync{option}` creates it")
    return open_store(store_path)


def find_session(store: Store, text: str) -> Session:
    """The session of this id, or the only one that the text abbreviates, with or without its agent's name.

    An id is abbreviated to its beginning, or, where it has dots, to the beginnings of what is between them; a `…` may
    stand for the middle of each, as in lists. A session
    goes before its subagents, whose ids begin with its own. A subagent is also found by its own id alone, with the
    `agent-` of Claude Code's names for it. Raises NotFoundError for none, for several and for an empty text.
    """
    if not text.strip():
        raise NotFoundError("there is no session with an empty id")
    try:
        return store.session(text)
    except NotFoundError:
        # Nearly all ids are in lower case, and some programs show them in upper case.
        for spelling in dict.fromkeys((text, text.lower())):
            for candidates in (
                _abbreviated(store, spelling, subagents=False),
                _abbreviated(store, spelling, subagents=True),
                _subagents(store, spelling),
            ):
                found = list(islice(candidates, CANDIDATES + 1))
                if len(found) == 1:
                    return found[0]
                if found:
                    raise NotFoundError(_ambiguous(text, found)) from None
        raise NotFoundError(f"there is no session {text}; `turnlog sessions` lists them") from None


def _ambiguous(text: str, found: list[Session]) -> str:
    more = ["…"] if len(found) > CANDIDATES else []
    lines = [f"  {session.id}  {session.title or ''}".rstrip() for session in found[:CANDIDATES]]
    return "\n".join([f"{text} could be any of these sessions:", *lines, *more])


def _abbreviated(store: Store, text: str, *, subagents: bool) -> Iterator[Session]:
    agent, colon, rest = text.rpartition(":")
    for session in iter_sessions(store, subagents=subagents) if text else ():
        if (not colon or session.agent == agent) and abbreviates(rest, session.external_id):
            yield session


def _subagents(store: Store, text: str) -> Iterator[Session]:
    """The subagents whose own id, behind that of the session that called them, begins so."""
    agent, _, rest = text.rpartition(":")
    own = rest.removeprefix("agent-").removesuffix(".jsonl")
    for session in iter_sessions(store, subagents=True) if own else ():
        _, dot, last = session.external_id.rpartition(".")
        if dot and last.startswith(own) and agent in ("", session.agent):
            yield session


def iter_sessions(store: Store, *, subagents: bool) -> Iterator[Session]:
    """All sessions, or all subagent sessions, page by page, newest first."""
    from turnlog.store.base import SessionFilter

    wanted = SessionFilter(relationship="subagent") if subagents else SessionFilter()
    cursor: str | None = None
    while True:
        page = store.sessions(wanted, limit=200, cursor=cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def complete_session(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of sessions for the shell, newest first, with the agent's name where it was typed.

    Bash splits words at the colon of an id, and so passes only the text after it.
    """
    from click.shell_completion import CompletionItem

    try:
        with open_existing(ctx.params.get("store_path") or paths.database_path()) as store:
            found = islice(_abbreviated(store, incomplete, subagents=False), COMPLETIONS)
            whole = ":" in incomplete
            return [CompletionItem(each.id if whole else each.external_id, help=each.title) for each in found]
    except TurnlogError:
        return []
