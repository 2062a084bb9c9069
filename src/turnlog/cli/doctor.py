"""`turnlog doctor`: what was found where, what could not be read and why, and what an agent will soon delete.

It imports no logs and creates no store. `--report` writes what can be pasted into a bug report: kinds, versions and
counts, never a path, an id or text of a log. Of an unknown record it names only fields and the types of their values;
field names that are not plain words are left out.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from turnlog import __version__
from turnlog.cli import formatting
from turnlog.cli.formatting import plural
from turnlog.cli.options import examples, json_option, limit_option, store_option
from turnlog.cli.terminal import PARTIAL, write_json
from turnlog.errors import SettingsError, SourceError, StoreError
from turnlog.plain_text import one_line, plain

if TYPE_CHECKING:
    from turnlog.agents.base import Agent, LogRetention, Source
    from turnlog.cli.documents import (
        DiagnosticDocument,
        DoctorDocument,
        FoundAgentDocument,
        RootDocument,
    )
    from turnlog.store.base import Store
    from turnlog.store.sources import Fingerprint
    from turnlog.store.values import SourceInfo, StoreStatus


@click.command(
    epilog=examples("turnlog doctor", "turnlog doctor --report", "turnlog doctor --limit 1000 --json | jq .diagnostics")
)
@limit_option(20, least=0, meaning="List at most this many unreadable records.")
@click.option(
    "--report", "as_report", is_flag=True, help="Write a summary for a bug report, without paths and content."
)
@json_option
@store_option
@click.pass_context
def doctor(ctx: click.Context, limit: int, as_report: bool, as_json: bool, store_path: Path) -> None:
    """Check what was found and what could not be read.

    Exits with 6 if files or records could not be read. Nothing is lost: the archive has their bytes.
    """
    if as_report and as_json:
        raise click.UsageError("--report and --json cannot be combined.")
    if as_report:
        click.echo(plain(shareable_report(store_path)))
        return
    document, has_errors = _examine(store_path, limit)
    if as_json:
        write_json(document)
    else:
        _write(document)
    if has_errors or any(found["severity"] == "error" for found in document["diagnostics"]):
        ctx.exit(PARTIAL)


def _examine(store_path: Path, limit: int) -> tuple[DoctorDocument, bool]:
    """What was found, and whether any record could not be read, also one that is not listed."""
    from turnlog.agents import agents
    from turnlog.agents.files import collect_links
    from turnlog.pricing import price_version
    from turnlog.store import open_store
    from turnlog.store.connection import SQLITE_VERSION

    document: DoctorDocument = {
        "versions": {
            "turnlog": __version__,
            "python": platform.python_version(),
            "sqlite": SQLITE_VERSION,
            "prices": price_version(),
        },
        "store": None,
        "unindexed": None,
        "agents": [],
        "links_not_followed": [],
        "diagnostics": [],
        "diagnostics_total": 0,
        "unknown_kinds": [],
        "warnings": [],
    }
    known: Mapping[str, Fingerprint] = {}
    has_errors = False
    if store_path.exists():
        with open_store(store_path) as store:
            document["store"] = store.status()
            has_errors = _add_diagnostics(document, store, store.sources(), limit)
            document["unknown_kinds"] = store.unknown_kinds()
            known = store.fingerprints()
        document["unindexed"] = _count_unindexed(store_path)
    registered = agents()
    with collect_links() as links:
        for agent in registered:
            document["agents"].append(_found(agent, known, document["diagnostics"]))
    document["links_not_followed"] = sorted(links)
    document["warnings"] = list(_warnings(document, registered))
    return document, has_errors


def _add_diagnostics(document: DoctorDocument, store: Store, sources: Iterable[SourceInfo], limit: int) -> bool:
    """Add files that could not be read on the last pass, then records that could not be understood, then notes.

    Returns whether there is a record that could not be understood.
    """
    from turnlog.store.base import DiagnosticFilter

    problems: list[DiagnosticDocument] = [
        _problem(source.path, source.problem) for source in sources if source.problem is not None
    ]
    pages = [store.diagnostics(DiagnosticFilter(severity=each), limit=max(limit, 1)) for each in _SEVERITIES]
    records: list[DiagnosticDocument] = [
        {
            "path": found.path,
            "line": found.line,
            "offset": found.offset,
            "json_path": found.json_path,
            "severity": found.severity,
            "reason": found.reason,
        }
        for found in [found for page in pages for found in page.items][:limit]
    ]
    document["diagnostics"] = [*problems, *records]
    document["diagnostics_total"] = len(problems) + sum(page.total or 0 for page in pages)
    return bool(pages[0].items)


def _count_unindexed(store_path: Path) -> int | None:
    """Number of messages that are not searchable yet; None where the index cannot be read."""
    from turnlog.store.search.base import search_path
    from turnlog.store.search.searcher import Searcher

    with Searcher(store_path, search_path(store_path)) as searcher:
        try:
            return searcher.unindexed()
        except StoreError:
            return None


def _found(agent: Agent, known: Mapping[str, Fingerprint], diagnostics: list[DiagnosticDocument]) -> FoundAgentDocument:
    from turnlog.agents import find_sources, homes_of
    from turnlog.agents.files import collect_unreadable_folders

    reported = {found["path"] for found in diagnostics}
    roots: list[RootDocument] = []
    with collect_unreadable_folders() as out_of_reach:
        for root in homes_of(agent):
            sources = pending = 0
            for _, source in find_sources([agent], [root]):
                sources += 1
                pending += _is_pending(source, known)
                reason = None if source.path in reported else _unreadable(agent, source)
                if reason is not None:
                    diagnostics.append(_problem(source.path, reason))
            days = None if agent.retention is None else _retention_days(agent.retention, root)
            roots.append({"path": str(root), "sources": sources, "pending": pending, "retention_days": days})
    diagnostics += [_problem(folder, reason) for folder, reason in out_of_reach.items()]
    return {"agent": agent.name, "display_name": agent.display_name, "roots": roots}


def _problem(path: str, reason: str) -> DiagnosticDocument:
    return {"path": path, "line": None, "offset": None, "json_path": None, "severity": "error", "reason": reason}


def _is_pending(source: Source, known: Mapping[str, Fingerprint]) -> bool:
    """Whether the next sync would read the source, by the fingerprint that a sync compares."""
    from turnlog.store.sources import Fingerprint

    if source.version is not None:
        return known.get(source.path) != source.version
    try:
        return known.get(source.path) != Fingerprint.of(Path(source.path).stat())
    except OSError:
        return True


def _unreadable(agent: Agent, source: Source) -> str | None:
    """Why a source cannot be opened; None when it can."""
    from turnlog.agents.base import SourceKind, reads_rows

    try:
        if not reads_rows(agent, source):
            Path(source.path).open("rb").close()
        elif source.kind is SourceKind.SIDECAR:  # the database itself; its sessions were seen in it
            agent.read_rows(source, ())
    except (OSError, SourceError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def _retention_days(retention: LogRetention, root: Path) -> int:
    """After how many days an agent deletes sessions, by the settings of a home."""
    try:
        settings: Any = json.loads((root / retention.file).read_bytes())
        days: Any = settings.get(retention.setting)
    except (OSError, ValueError, AttributeError):
        return retention.days
    return days if isinstance(days, int) and not isinstance(days, bool) else retention.days


def _warnings(document: DoctorDocument, agents: Sequence[Agent]) -> Iterator[str]:
    from turnlog.settings import load_settings

    try:
        load_settings()
    except SettingsError as error:
        yield f"{error}."
    store = document["store"]
    if store is None:
        yield "There is no store yet: `turnlog sync` creates it."
    else:
        yield from _room_warnings(Path(store.path))
        yield from _overwriting_warnings(Path(store.path))
        yield from _rebuild_warnings(Path(store.path), agents)
    for agent, found in zip(agents, document["agents"], strict=True):
        for root in found["roots"]:
            days = root["retention_days"]
            if days is not None and agent.retention is not None:
                yield (
                    f"{agent.display_name} deletes sessions that were not used for {days} days"
                    f" ({agent.retention.setting} in {root['path']}/{agent.retention.file})."
                    f" turnlog keeps what it has read:"
                    f" {_advice(store, days, root['pending'])}"
                )


def _room_warnings(store_path: Path) -> Iterator[str]:
    from turnlog.store.disk import database_files, missing_room

    if missing_room(store_path, 0):
        yield f"The disk of {store_path} is nearly full: what agents write may not be read."
    try:
        free = sum(file.free for file in database_files(store_path))
    except StoreError as error:  # an index with a log beside it, on a disk that is only read
        yield f"{error}."
        return
    if free >= _MUCH_FREE:
        yield f"{formatting.size(free)} of the store hold nothing: `turnlog db compact` gives them back."


def _overwriting_warnings(store_path: Path) -> Iterator[str]:
    from turnlog.store.search import overwriting
    from turnlog.store.search.base import search_path

    # What cannot be read was said above.
    with suppress(StoreError):
        if overwriting.is_pending(search_path(store_path)):
            yield (
                f"{search_path(store_path)} still has bytes of words that were forgotten: they are being overwritten,"
                " and `turnlog sync` goes on with it should that have been stopped."
            )


def _rebuild_warnings(store_path: Path, agents: Sequence[Agent]) -> Iterator[str]:
    from turnlog.store.connection import connect
    from turnlog.store.sources import left_of_forgotten, outdated_sources

    names = {agent.name: agent.display_name for agent in agents}
    with closing(connect(store_path, read_only=True)) as connection:
        outdated = outdated_sources(connection, {agent.name: agent.parser_version for agent in agents})
        left = left_of_forgotten(connection)
    if outdated:
        counts = ", ".join(f"{names[name]} {formatting.count(count)}" for name, count in sorted(outdated.items()))
        yield (
            f"An older version of turnlog has read {formatting.plural(sum(outdated.values()), 'file')} of the archive"
            f" ({counts}): `turnlog rebuild` reads them again, with what the newer one understands."
        )
    if left:
        yield (
            f"The archive still has bytes of {formatting.plural(len(left), 'file')} of forgotten sessions"
            f" ({left[0]}{', …' if len(left) > 1 else ''}): `turnlog rebuild` deletes them."
        )


def _advice(store: StoreStatus | None, days: int, pending: int) -> str:
    synced = None if store is None else store.last_sync_at
    if pending and (synced is None or datetime.now(UTC) - synced > timedelta(days=days) / 2):
        return f"{formatting.plural(pending, 'file')} may go unread; run `turnlog sync` now."
    return "run `turnlog sync` more often than that."


def _write(document: DoctorDocument) -> None:
    versions = document["versions"]
    click.echo(
        f"turnlog {versions['turnlog']}, Python {versions['python']}, SQLite {versions['sqlite']},"
        f" prices {versions['prices']}"
    )
    _write_store(document)
    for agent in document["agents"]:
        if agent["roots"]:
            click.echo(f"\n{agent['display_name']} ({agent['agent']})")
        for root in agent["roots"]:
            pending = f", {formatting.count(root['pending'])} not read yet" if root["pending"] else ""
            click.echo(f"  {one_line(root['path'])}: {formatting.plural(root['sources'], 'file')}{pending}")
    missing = [agent["display_name"] for agent in document["agents"] if not agent["roots"]]
    if missing:
        click.echo(f"\nNot found on this machine: {', '.join(missing)}")
    _write_links(document["links_not_followed"])
    _write_diagnostics(document)
    if document["unknown_kinds"]:
        click.echo("\nRecords of unknown kinds, kept as they are")
        for unknown in document["unknown_kinds"]:
            kind = one_line(unknown.kind) or "without a kind"
            click.echo(f"  {one_line(unknown.agent)}: {kind} ({formatting.count(unknown.count)})")
    for warning in document["warnings"]:
        click.echo(f"\n{one_line(warning)}")


def _write_store(document: DoctorDocument) -> None:
    store = document["store"]
    if store is None:
        return
    unindexed = document["unindexed"]
    click.echo(f"\nStore {plain(store.path)}")
    for line in (
        f"{formatting.plural(store.sessions, 'session')}, {formatting.plural(store.subagents, 'subagent')},"
        f" {formatting.plural(store.messages, 'message')}; last sync {formatting.moment(store.last_sync_at)}",
        f"{formatting.size(store.file_size or 0)} on disk, for {formatting.size(store.source_bytes)} of logs"
        f" (archive {formatting.size(store.archive_bytes)}); schema {store.schema_version}",
        f"{formatting.plural(store.vanished, 'file')} gone from disk and kept here" if store.vanished else "",
        f"search is {formatting.plural(unindexed, 'message')} behind" if unindexed else "",
    ):
        if line:
            click.echo(f"  {line}")


def _write_links(links: list[str]) -> None:
    if links:
        click.echo(f"\n{formatting.plural(len(links), 'symbolic link')} below agents' folders not followed")
        _write_places(links)


def _write_places(places: list[str]) -> None:
    for place in places[:_SHOWN_PLACES]:
        click.echo(f"    {one_line(place)}")
    if len(places) > _SHOWN_PLACES:
        click.echo(f"    … {formatting.count(len(places) - _SHOWN_PLACES)} more; --json lists them")


def _place(found: DiagnosticDocument) -> str:
    inside = "" if found["json_path"] is None else f" at {found['json_path']}"
    if found["line"] is not None:
        return f":{found['line']}{inside}"
    return inside if found["offset"] is None else f" at byte {found['offset']}{inside}"


def _write_diagnostics(document: DoctorDocument) -> None:
    shown, total = document["diagnostics"], document["diagnostics_total"]
    if not shown:
        return
    click.echo("\nNot understood")
    by_reason: dict[str, list[str]] = {}
    for found in shown:
        by_reason.setdefault(found["reason"], []).append(f"{found['path']}{_place(found)}")
    for reason, places in by_reason.items():
        click.echo(f"  {one_line(reason)}" + (f" ({formatting.count(len(places))} times)" if len(places) > 1 else ""))
        _write_places(places)
    if total > len(shown):
        click.echo(f"  … {formatting.count(total - len(shown))} more; --limit shows them")


_SEVERITIES: tuple[Literal["error", "note"], ...] = ("error", "note")
"""Of diagnostics, in the order in which they are listed."""

_MUCH_FREE = 256 << 20
"""Bytes of free pages that are worth a hint; fewer are soon used again."""

_SHOWN_PLACES = 3
"""Places of one reason, and links, that are listed; the others are counted."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")
_PLAIN_KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_./:-]{0,63}")
_MOST_FIELDS = 40
_DEPTH = 2

_TYPE_NAMES: dict[type, str] = {str: "text", bool: "true or false", int: "number", float: "number", type(None): "null"}


def shareable_report(store_path: Path) -> str:
    """The report as Markdown."""
    from turnlog.store.connection import SQLITE_VERSION

    lines = [f"turnlog {__version__}, Python {platform.python_version()}, SQLite {SQLITE_VERSION}"]
    lines.append(f"{platform.system()} {platform.machine()}")
    if not store_path.exists():
        return "\n".join([*lines, "no store"])
    from turnlog.store import open_store

    with open_store(store_path) as store:
        lines += [*_agent_lines(store), *_unknown_kind_lines(store), *_diagnostic_lines(store)]
    from turnlog.redact import Redactor

    # A name may be a key: of a mapping from keys to whatever they open.
    return Redactor().redact("\n".join(lines))


def _agent_lines(store: Store) -> Iterator[str]:
    versions = store.agent_versions()
    for summary in store.agents():
        yield ""
        held = f"{plural(summary.sessions, 'session')}, {plural(summary.subagents, 'subagent')}"
        yield f"## {_plain_kind(summary.agent)}: {held}"
        seen = [f"{_plain_kind(each.version)} ({each.sessions})" for each in versions.get(summary.agent, ())]
        yield f"versions: {', '.join(seen) or 'unknown'}"


def _unknown_kind_lines(store: Store) -> Iterator[str]:
    found = store.unknown_kinds()
    if found:
        yield ""
        yield "## Kinds of records that are not known"
    for each in found:
        yield f"- {_plain_kind(each.agent)} `{_plain_kind(each.kind)}`: {each.count}"
        record = store.unknown_record(each.agent, each.kind)
        if record is not None:
            yield f"  {shape_of(record)}"


def _diagnostic_lines(store: Store) -> Iterator[str]:
    found = store.diagnostic_counts()
    if found:
        yield ""
        yield "## What could not be read"
    for each in found:
        place = re.sub(r"\[\d+\]", "[]", each.json_path or "the whole record")
        yield f"- {_plain_kind(each.agent)}, {each.severity}: {each.count} at {place if len(place) < 80 else '…'}"


def shape_of(value: Any, depth: int = _DEPTH) -> str:
    """Names of fields and types of values: `{type: text, items: [number]}`."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if depth == 0:
            return "{…}"
        names = [name for name in fields if _PLAIN_NAME.fullmatch(name)][:_MOST_FIELDS]
        rest = [] if len(names) == len(fields) else [f"… {len(fields) - len(names)} more"]
        return f"{{{', '.join([*(f'{name}: {shape_of(fields[name], depth - 1)}' for name in names), *rest])}}}"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return f"[{shape_of(items[0], depth)}]" if items else "[]"
    return next((word for kind, word in _TYPE_NAMES.items() if isinstance(value, kind)), "something")


def _plain_kind(word: str) -> str:
    """A kind, a version or an agent's name; anything but a plain word could be private text, and becomes `(odd)`."""
    return word if _PLAIN_KIND.fullmatch(word) or re.fullmatch(r"[0-9][0-9A-Za-z.+-]{0,39}", word) else "(odd)"
