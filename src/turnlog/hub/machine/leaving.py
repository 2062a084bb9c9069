"""What of a batch may leave this machine, by the level of each session.

At `none` nothing of a session leaves. At `metrics` its numbers do (`metrics`), at `redacted` everything without secrets
(`redacting`), at `full` everything. A message of several sessions leaves once, at the highest of their levels, and is
so in each of them that is `redacted` or `full`. If taking out secrets fails, the whole batch fails: nothing leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from typing import Final

import msgspec

from turnlog.hub.machine import metrics
from turnlog.hub.machine.levels import LEVELS, Level, Levels, Place
from turnlog.hub.machine.redacting import Redacting
from turnlog.redact import KnownValues
from turnlog.store.feed.reading import Shared
from turnlog.store.feed.values import IDENTITY, KEYS, OF_SOURCE, TABLES, UNKNOWN_MODEL, FeedBatch, Row

_RANK: Final[dict[Level, int]] = {level: rank for rank, level in enumerate(LEVELS)}

_OF_MESSAGE: Final = {"messages": 0, "parts": 0, "more_paths": 1, "blob_uses": 1}
"""Table -> where the key of the message is."""

_OF_SESSION: Final = ("usage", "call_totals", "edit_totals", "streams", "events", "memberships", "superseded")

_BY_ID: Final = {"links": "child_id", "annotations": "session_id", "answers": "session_id", "runs": "session_id"}

_SHARED: Final = ("owners", "projects", "models", "price_versions")


class Leaving(msgspec.Struct):
    """What leaves of one batch."""

    batch: FeedBatch
    sessions: dict[str, tuple[str, Level]]
    """Session -> its id on the hub, and its level, for those that leave."""
    held_back: list[str] = []
    """Sessions of which nothing leaves."""
    archives: list[str] = []
    """Files whose bytes leave, too."""
    contents: dict[str, bytes] = {}
    """SHA-256 -> large contents without their secrets."""
    masked: Counter[str] = msgspec.field(default_factory=Counter[str])
    """Rule -> secrets that were taken out."""
    clean: list[bytes] = []
    """Digests of messages in which no secret was found."""
    in_full: dict[str, set[int]] = {}
    """Session at `redacted` -> keys of its messages that leave with their secrets, as a session at `full` has them."""


class Sieve:
    """Makes of batches what may leave."""

    def __init__(
        self,
        levels: Levels,
        names: metrics.HashedNames,
        load_blob: Callable[[str], bytes],
        sources: Callable[[set[int]], Mapping[int, set[Place]]],
        clean_of: Callable[[Collection[bytes]], set[bytes]],
        bodies_of: Callable[[set[int]], Iterable[bytes]],
        absent: Set[str] = frozenset(),
    ) -> None:
        """Keep what it needs.

        Args:
            levels: The level of every project.
            names: Makes names of sessions at `metrics`, the same on all machines of a person.
            load_blob: The bytes of a large content, by its SHA-256.
            sources: Source -> the places of all sessions of which it says something.
            clean_of: Which of these digests are of messages that are known to have no secrets.
            bodies_of: The JSON of all messages of sessions, by their keys.
            absent: Ids on the hub of sessions that leave as if they were not here: the hub has forgotten them.
        """
        self._levels = levels
        self._names = names
        self._load_blob = load_blob
        self._sources = sources
        self._clean_of = clean_of
        self._bodies_of = bodies_of
        self._absent = absent
        self._known = KnownValues()
        self._learned = set[int]()
        """Sessions of which every message was looked at for secrets that stand alone elsewhere."""
        self._of_source: dict[int, Level] = {}

    def hidden_name(self, session_id: str) -> str:
        """The id that a session has on the hub at `metrics`."""
        return self._names.session(session_id)

    def earlier_name(self, session_id: str) -> str:
        """The id that a session had on the hub at `metrics` before there were secrets of ids."""
        return self._names.earlier(session_id)

    def hidden_id(self, message_id: str) -> str:
        """The id that a message has on the hub at `metrics`."""
        return self._names.hash(message_id)

    @property
    def asks_who_shares(self) -> bool:
        """Whether it matters in which other sessions a message is: not where all have one level."""
        return self._levels.differ

    def raised(self, shared: Shared) -> set[int]:
        """Messages whose level is higher than before they got a new place: what left of them was less, or nothing."""
        before = self._levels_of_shared(shared, lambda is_new: not is_new)
        now = self._levels_of_shared(shared)
        return {key for key, level in now.items() if _RANK[level] > _RANK[before.get(key, "none")]}

    def pass_through(self, batch: FeedBatch, shared: Shared) -> Leaving:
        """What of a batch may leave; `shared` is what `shared_messages` says of it, or nothing (`asks_who_shares`).

        Raises what taking out secrets raises.
        """
        levels = self._levels_of(batch)
        self._find_levels_of_sources(batch)
        of_message = self._levels_of_messages(batch, levels)
        for key, shared_level in self._levels_of_shared(shared).items():
            of_message[key] = max(shared_level, of_message.get(key, "none"), key=_RANK.__getitem__)
        rows: dict[str, list[Row]] = {}
        names = {table: dict(known) for table, known in batch.names.items()}
        bodies: dict[int, bytes] = {}
        redacting = Redacting(self._load_blob, self._clean_of, self._known, self._names)
        # A title may repeat what only a message of another batch shows to be a secret.
        new = {key for key, level in levels.items() if level == "redacted"} - self._learned
        redacting.learn(self._bodies_of(new))
        self._learned |= new
        ids = {":".join(batch.names["sessions"][key]): key for key in levels}
        for level in ("metrics", "redacted", "full"):
            part = self._part(batch, level, levels, of_message, ids)
            if level == "metrics":
                part = self._names.hide(part, names)
            elif level == "redacted":
                part = redacting.redact(part, names)
            for table, found in part.rows.items():
                rows.setdefault(table, []).extend(found)
            bodies |= part.bodies
        for table in _SHARED:
            # Of rows that sessions of several levels name, the one that says least leaves.
            first = {row[0]: row for row in reversed(rows.get(table, ()))}
            rows[table] = list(first.values())
            places = [TABLES[table].index(column) for column in IDENTITY[table]]
            names[table] = {key: tuple([row[at] for at in places]) for key, row in first.items()}
        left = {key for key, level in levels.items() if level != "none"}
        sessions: dict[str, tuple[str, Level]] = {
            session_id: (":".join(names["sessions"][key]), levels[key])
            for session_id, key in ids.items()
            if key in left and any(row[0] == key for row in rows.get("sessions", ()))
        }
        made = FeedBatch(
            after=batch.after,
            until=batch.until,
            has_more=batch.has_more,
            rows=rows,
            names=names,
            bodies=bodies,
            complete=[key for key in batch.complete if key in left],
            whole=[key for key in batch.whole if key in left],
            billed={
                key: None if session not in left else session
                for key, session in batch.billed.items()
                if of_message.get(key, "none") != "none"
            },
            levels={key: level for key, level in levels.items() if level not in ("none", "full")},
        )
        archives = [row[2] for row in rows.get("sources", ()) if self._level_of_source(row[0]) == "full"]
        shown = {key for key, level in self._of_source.items() if level in ("redacted", "full")}
        held_back = [
            session_id for session_id, key in ids.items() if key not in left and not self._is_absent(session_id)
        ]
        return Leaving(
            batch=_without_unknown(made, shown),
            sessions=sessions,
            held_back=held_back,
            archives=archives,
            contents=redacting.contents,
            masked=redacting.masked,
            clean=list(redacting.clean),
            in_full=self._in_full(batch, levels, of_message),
        )

    def _levels_of(self, batch: FeedBatch) -> dict[int, Level]:
        at, cwd = (TABLES["sessions"].index(name) for name in ("project_key", "cwd"))
        projects = batch.names.get("projects", {})
        levels: dict[int, Level] = {}
        for key in batch.names.get("sessions", {}):
            levels[key] = "none"
        for row in batch.rows.get("sessions", ()):
            path = projects[row[at]][0] if row[at] in projects else None
            levels[row[0]] = self._level_of(":".join(batch.names["sessions"][row[0]]), path, row[cwd])
        return levels

    def _level_of(self, session_id: str, project: str | None, cwd: str | None) -> Level:
        return "none" if self._is_absent(session_id) else self._levels.of(project, cwd)

    def _is_absent(self, session_id: str) -> bool:
        return bool(self._absent) and not self._absent.isdisjoint((session_id, self.hidden_name(session_id)))

    def _levels_of_messages(self, batch: FeedBatch, levels: Mapping[int, Level]) -> dict[int, Level]:
        """The highest level of the sessions that a message has a place in."""
        found: dict[int, Level] = {}
        for table in ("memberships", "superseded"):
            for row in batch.rows.get(table, ()):
                level = levels.get(row[0], "none")
                if _RANK[level] > _RANK[found.get(row[2], "none")]:
                    found[row[2]] = level
        return found

    def _in_full(
        self, batch: FeedBatch, levels: Mapping[int, Level], of_message: Mapping[int, Level]
    ) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for row in batch.rows.get("memberships", ()) if self.asks_who_shares else ():
            if levels.get(row[0]) == "redacted" and of_message[row[2]] == "full":
                found.setdefault(":".join(batch.names["sessions"][row[0]]), set()).add(row[2])
        return found

    def _levels_of_shared(
        self, shared: Shared, counts: Callable[[bool], bool] = lambda is_new: True
    ) -> dict[int, Level]:
        """The highest level of the sessions that a message has a place in; `counts` says whether a new one counts."""
        levels: dict[int, Level] = {session: self._level_of(*said) for session, said in shared.sessions.items()}
        found: dict[int, Level] = {}
        for message, session, is_new in shared.places:
            if counts(is_new):
                found[message] = max(levels[session], found.get(message, "none"), key=_RANK.__getitem__)
        return found

    def _part(
        self,
        batch: FeedBatch,
        level: Level,
        levels: Mapping[int, Level],
        of_message: Mapping[int, Level],
        ids: Mapping[str, int],
    ) -> FeedBatch:
        """The rows of the sessions and messages with one level."""
        messages = {key for key, found in of_message.items() if found == level}
        rows: dict[str, list[Row]] = {
            "sessions": [row for row in batch.rows.get("sessions", ()) if levels[row[0]] == level]
        }
        for table, at in _OF_MESSAGE.items():
            rows[table] = [row for row in batch.rows.get(table, ()) if row[at] in messages]
        for table in _OF_SESSION:
            at = TABLES[table].index("session_key")
            rows[table] = [row for row in batch.rows.get(table, ()) if levels.get(row[at], "none") == level]
        # At `metrics`, messages have other ids.
        shown = {level} if level == "metrics" else {"redacted", "full"}
        for table in ("memberships", "superseded"):
            rows[table] = [row for row in rows[table] if of_message[row[2]] in shown]
        for table, column in _BY_ID.items():
            at = TABLES[table].index(column)
            rows[table] = [row for row in batch.rows.get(table, ()) if row[at] in ids and levels[ids[row[at]]] == level]
        sources = {row[0] for row in batch.rows.get("sources", ()) if self._level_of_source(row[0]) == level}
        rows["sources"] = [row for row in batch.rows.get("sources", ()) if row[0] in sources]
        for table in OF_SOURCE:
            at = TABLES[table].index("source_key")
            rows[table] = [row for row in batch.rows.get(table, ()) if row[at] in sources]
        uses = {row[0] for row in rows["blob_uses"]}
        rows["blobs"] = [
            (sha256, size, media_type, 0, b"")
            for sha256, size, media_type, _, _ in batch.rows.get("blobs", ())
            if sha256 in uses
        ]
        used = self._used(rows)
        for table in _SHARED:
            rows[table] = [row for row in batch.rows.get(table, ()) if row[0] in used[table]]
        bodies = {key: body for key, body in batch.bodies.items() if key in messages}
        return msgspec.structs.replace(batch, rows=rows, bodies=bodies)

    @staticmethod
    def _used(rows: Mapping[str, list[Row]]) -> dict[str, set[int]]:
        used: dict[str, set[int]] = {table: set() for table in IDENTITY}
        for table, found in rows.items():
            for at, name in enumerate(TABLES[table]):
                if name in KEYS:
                    used[KEYS[name]] |= {row[at] for row in found}
        return used

    def _find_levels_of_sources(self, batch: FeedBatch) -> None:
        """The lowest level of the sessions of which a source says something; `none` for those of no session."""
        wanted = set(batch.names.get("sources", {})) | {row[0] for row in batch.rows.get("sources", ())}
        self._of_source = {key: self._levels.lowest(places) for key, places in self._sources(wanted).items()}

    def _level_of_source(self, key: int) -> Level:
        return self._of_source.get(key, "none")


def _without_unknown(batch: FeedBatch, sources: set[int]) -> FeedBatch:
    """The batch without references to rows that do not leave, and without their names."""
    rows: dict[str, list[Row]] = {}
    kept = {table: {row[0] for row in batch.rows.get(table, ())} for table in ("sessions", *_SHARED)}
    # Sources and messages may have been sent before.
    kept["messages"] = {row[0] for row in batch.rows.get("messages", ())} | {
        row[2] for table in ("memberships", "superseded") for row in batch.rows.get(table, ())
    }
    kept["sources"] = sources
    for table, found in batch.rows.items():
        places = [(at, KEYS[name]) for at, name in enumerate(TABLES[table]) if name in KEYS]
        rows[table] = [_without(row, places, kept) for row in found]
    names = {
        table: {key: name for key, name in known.items() if key in kept[table]} for table, known in batch.names.items()
    }
    return msgspec.structs.replace(batch, rows=rows, names=names)


def _without(row: Row, places: list[tuple[int, str]], kept: Mapping[str, set[int]]) -> Row:
    values = list(row)
    for at, table in places:
        key = values[at]
        if key is not None and key not in kept[table] and not (table == "models" and key == UNKNOWN_MODEL):
            values[at] = None
    return tuple(values)
