"""`turnlog show`: one session as a transcript, as history events, or as the agent's own bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import complete_session, examples, find_session, json_option
from turnlog.cli.terminal import is_terminal, write_json_text
from turnlog.errors import NotFoundError
from turnlog.plain_text import plain

if TYPE_CHECKING:
    from turnlog.model import HistoryEvent, Session
    from turnlog.store.base import Store
    from turnlog.store.values import MessagePlace, PlacedMessage

PAGE = 200
"""Messages that are read at a time, so that the first are shown before the last are read."""

AROUND = 5
"""Messages that `--at` shows before a message, and from it on."""


@click.command(
    epilog=examples(
        "turnlog show 3f2a91c0",
        "turnlog show 3f2a91c0 --full | less",
        "turnlog show 3f2a91c0 --at msg_01Xq      # what a search found, and what is around it",
        "turnlog show claude-code:3f2a91c0-… --json | jq '.events[].type'",
        "turnlog show 3f2a91c0 --raw > session.jsonl",
    )
)
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@click.option("--reasoning", is_flag=True, help="Show reasoning in full.")
@click.option("--full", is_flag=True, help="Show inputs, outputs, reasoning and harness texts in full, edits as diffs.")
@click.option("--at", "message", metavar="MESSAGE", help="Show only this message, in full, and those around it.")
@click.option(
    "--around",
    metavar="N",
    type=click.IntRange(min=1),
    help=f"With --at: show so many messages before it, and as many from it on; by default {AROUND}.",
)
@click.option("--raw", is_flag=True, help="Write the log as the agent wrote it, byte for byte.")
@click.option("--pager/--no-pager", default=True, help="Use a pager on a terminal, or do not.")
@json_option
@fresh_store_option
def show(
    session_id: str,
    reasoning: bool,
    full: bool,
    message: str | None,
    around: int | None,
    raw: bool,
    pager: bool,
    as_json: bool,
    store_path: Path,
) -> None:
    """Show a session as a transcript.

    SESSION is an id or the beginning of one, with or without the agent's name. Reasoning and tool calls take one line
    each. Subagents are separate sessions; their calls name them. MESSAGE is an id as `turnlog search` prints it, its
    beginning or its end.
    """
    if raw and as_json:
        raise click.UsageError("--raw and --json cannot be combined.")
    if message is not None and (raw or as_json):
        raise click.UsageError("--at shows a part of the transcript: it goes with neither --raw nor --json.")
    if around is not None and message is None:
        raise click.UsageError("--around needs --at MESSAGE: around which message?")
    with open_fresh(store_path) as store:
        session = find_session(store, session_id)
        if raw:
            _write_raw(store, session)
        elif as_json:
            _write_document(store, session)
        else:
            part = None if message is None else _around(store, session.id, message, around or AROUND)
            _write_transcript(store, session, part, reasoning=reasoning, full=full, pager=pager)


def _write_raw(store: Store, session: Session) -> None:
    """Write the session's own log: its exact bytes to a pipe, and to a terminal without control sequences."""
    source = next(store.raw(session.id), None)
    if source is None:
        raise NotFoundError(f"session {session.id} was not read from a file")
    for data in source.pieces:
        if is_terminal():
            click.echo(plain(data.decode(errors="replace")), nl=False)
        else:
            click.echo(data, nl=False)


def _write_document(store: Store, session: Session) -> None:
    from turnlog.model.codec import encode

    write_json_text(f'{{"session":{encode(session).decode()},"events":[')
    for number, event in enumerate(store.history(session.id)):
        write_json_text(f"{',' if number else ''}\n{encode(event).decode()}")
    write_json_text("\n]}\n")


def _write_transcript(
    store: Store,
    session: Session,
    part: _Part | None,
    *,
    reasoning: bool,
    full: bool,
    pager: bool,
) -> None:
    from turnlog.cli.status import status
    from turnlog.cli.transcript import Detail, transcript
    from turnlog.runs.states import session_states

    def read_spill(name: str) -> str | None:
        try:
            return store.spill(session.id, name).decode(errors="replace")
        except NotFoundError:
            return None

    events: Iterable[HistoryEvent] = store.events(session.id)
    if part is None:
        messages: Iterable[PlacedMessage] = _iter_messages(store, session.id, resolve_blobs=full)
    else:
        messages, events = part.messages, [event for event in events if part.first <= event.position < part.end]
    detail = Detail(reasoning, full, read_spill, found=None if part is None else part.found)
    lines = transcript(
        session,
        messages,
        events,
        detail,
        status=status(session_states(store, [session.id]).get(session.id)),
        preview=store.previews([session.id])[session.id],
        resume=_resume(session),
    )
    if pager and is_terminal():
        click.echo_via_pager(f"{line}\n" for line in lines)
    else:
        for line in lines:
            click.echo(line)


class _Part(NamedTuple):
    """A message with its neighbours, and the positions of the events that belong to them."""

    found: str
    messages: Sequence[PlacedMessage]
    first: float
    end: float


def _around(store: Store, session_id: str, message: str, number: int) -> _Part:
    """The message with this id, or the only one whose id begins or ends so, and so many on both sides of it."""
    places = {each.message_id: each.position for each in _iter_places(store, session_id)}
    lower = {id.lower(): id for id in places}
    found = _ids_like(message, places) or [lower[id] for id in _ids_like(message.lower(), lower)]
    if len(found) != 1:
        reason = "no message" if not found else f"{len(found)} messages"
        raise NotFoundError(f"{reason} of {session_id} has the id {message!r}")
    positions = list(places.values())
    at = positions.index(places[found[0]])
    messages = store.messages(session_id, around=positions[at], limit=2 * number)
    # What happened before the first message of a session, and after its last one, belongs to them.
    first = positions[at - number] if at >= number else -inf
    end = positions[at + number] if at + number < len(positions) else inf
    return _Part(found[0], messages, first, end)


def _ids_like(text: str, ids: Mapping[str, object]) -> list[str]:
    """The id that the text is, else those that begin or end so."""
    return [text] if text in ids else [id for id in ids if id.startswith(text) or id.endswith(text)]


def _iter_places(store: Store, session_id: str) -> Iterator[MessagePlace]:
    """The places of all messages, which takes a tenth of the time that reading the messages does."""
    from turnlog.model import Fate

    since: int | None = None
    while True:
        page = store.places(session_id, fates=Fate, since=since, limit=PAGE)
        yield from page
        if len(page) < PAGE:
            return
        since = page[-1].position + 1


def _resume(session: Session) -> list[str]:
    """The command that goes on with it, if there is one, and why it cannot be started as things are."""
    from turnlog.runs.resuming import folder_problem, resume_line

    line = resume_line(session)
    problem = None if line is None else folder_problem(session)
    return [each for each in (line, problem) if each is not None]


def _iter_messages(store: Store, session_id: str, *, resolve_blobs: bool) -> Iterator[PlacedMessage]:
    after: int | None = None
    while True:
        page = store.messages(session_id, after=after, limit=PAGE, resolve_blobs=resolve_blobs)
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].membership.position
