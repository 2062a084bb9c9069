"""The level `metrics`: numbers, times, models and names of tools leave, and no title, path or word.

Ids may be words (some agents name sessions after what they are about), so they are hashed; a project is a hash, too.
Bodies are made anew, without parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Self

import msgspec

from turnlog.model import Message
from turnlog.redact import mask_text
from turnlog.store import bodies, zstd
from turnlog.store.feed.hidden_ids import HiddenIds
from turnlog.store.feed.values import TABLES, FeedBatch, Row

_NOBODY: Final = 1
"""The key of the owner who is nobody, in every store."""

_KEPT: Final[dict[str, frozenset[str]]] = {
    "sessions": frozenset(TABLES["sessions"])
    - {"title", "title_source", "cwd", "git_branch", "git_commit", "active_leaf", "titles", "metadata", "folder_key"}
    - {"totals", "agent_version"},
    "messages": frozenset(TABLES["messages"]) - {"text_preview"},
    "parts": frozenset(TABLES["parts"]) - {"path", "media_type", "spill", "command"},
    "memberships": frozenset(TABLES["memberships"])
    - {"source_key", "generation", "parent_record", "fate_cause", "records", "record_ids"},
    "usage": frozenset(TABLES["usage"]),
    "call_totals": frozenset(TABLES["call_totals"]) - {"command"},
    "models": frozenset(TABLES["models"]),
    "price_versions": frozenset(TABLES["price_versions"]),
}
"""Table -> the columns that leave, as they are or hashed. Of other tables no row leaves, except owners and projects."""

_INSTEAD: Final[dict[tuple[str, str], Any]] = {
    ("messages", "text_preview"): "",
    ("memberships", "generation"): 0,
    ("call_totals", "command"): "",
}
"""The value of a column that may not be NULL."""

_HASHED: Final = frozenset({"external_id", "tool_call_id", "parent_id"})

_SUMS: Final = TABLES["call_totals"].index("calls")
"""Where the numbers of `call_totals` begin."""

_WORD: Final = re.compile(r"[\w.:/@+-]{1,100}", re.ASCII)
"""Names of tools, models and reasons. What is none of that, has a secret or is a place of this machine, is hashed."""

_PLACE: Final = re.compile(
    r"[/.~].*|.*//.*|[A-Za-z]+:/.*|.*:[0-9]{2,5}/.*|.*[/:]\.\.?/.*|(?:[^/]*/){4,}.*"
    r"|(?:.*[/:])?(?:home|users|root|mnt|media|volumes|tmp|var|opt|srv|workspaces?)/.*"
    r"|.*\.(?:gguf|ggml|bin|safetensors|pth?|onnx|ckpt|llamafile|exe|py|sh|m?js|ts)(?:[:@].*)?",
    re.ASCII | re.IGNORECASE,
)
"""A path, an address or a file: local models are named by theirs, some tools by their program."""

_NAMED: Final = frozenset(
    {"tool_name", "tool_kind", "tool_state", "stop_reason", "name", "agent", "origin", "role"}
) | {*("type", "exactness", "fate", "relationship")}


class HashedNames(HiddenIds):
    """Takes everything out of rows that is no number, time, model or tool; names are hashed.

    Ids are the same on every machine of a person, as copies of a session are found by them: they are hashed with a
    secret that the hub gives these machines. It asks for no paths: they are hashed with a secret of the machine.
    """

    _paths: HiddenIds | None = None

    @classmethod
    def of_machine(cls, team: int | str, user: str, ids_secret: str, secret: str) -> Self:
        """For what a machine with this secret sends to a team of a hub for its person, whose ids have another one."""
        made = cls.of_person(team, user, ids_secret)
        made._paths = HiddenIds(f"{team}/{user}/{secret}")
        return made

    def hide(self, batch: FeedBatch, names: dict[str, dict[int, Row]]) -> FeedBatch:
        """The rows without words; `names` are changed to what they are now."""
        rows: dict[str, list[Row]] = {}
        for table, kept in _KEPT.items():
            changes = [self._change(table, column, column in kept) for column in TABLES[table]]
            rows[table] = [
                tuple([change(value) for change, value in zip(changes, row, strict=True)])
                for row in batch.rows.get(table, ())
            ]
        rows["call_totals"] = _added_up(rows["call_totals"])
        owner = TABLES["sessions"].index("owner_key")
        rows["sessions"] = [(*row[:owner], _NOBODY, *row[owner + 1 :]) for row in rows["sessions"]]
        nobody = ("", "", "", "")
        if rows["sessions"]:
            rows["owners"] = [(_NOBODY, *nobody)]
            names.setdefault("owners", {})[_NOBODY] = nobody
        paths = self._paths or self
        hidden = {key: paths.hash(path) for key, path, *_ in batch.rows.get("projects", ())}
        own = {row[TABLES["sessions"].index("project_key")] for row in rows["sessions"]}
        rows["projects"] = [(key, name, name[:12], None, None, None) for key, name in hidden.items() if key in own]
        names.setdefault("projects", {}).update({row[0]: (row[1],) for row in rows["projects"]})
        for table in ("sessions", "messages"):
            at = TABLES[table].index("external_id")
            agent = TABLES[table].index("agent")
            names.setdefault(table, {}).update({row[0]: (row[agent], row[at]) for row in rows[table]})
        # Messages that were sent before are named by their places only.
        sent = {row[0] for row in rows["messages"]}
        for row in rows["memberships"]:
            if row[2] not in sent:
                message_agent, external_id = batch.names["messages"][row[2]]
                names["messages"][row[2]] = (message_agent, self.hash(external_id))
        return msgspec.structs.replace(batch, rows=rows, bodies=self._bodies(rows["messages"]))

    def _change(self, table: str, column: str, is_kept: bool) -> Callable[[Any], Any]:
        if not is_kept:
            instead = _INSTEAD.get((table, column))
            return lambda _: instead
        if column in _HASHED:
            return lambda value: self.hash(value) if value else value
        if column in _NAMED:
            return lambda value: value if not value or is_name(value) else self.hash(value)
        return lambda value: value if value is None or isinstance(value, int) else _refuse(table, column)

    def _bodies(self, messages: list[Row]) -> dict[int, bytes]:
        role, external_id = TABLES["messages"].index("role"), TABLES["messages"].index("external_id")
        return {
            row[0]: zstd.compress(bodies.pack_fresh(Message(id=row[external_id], role=row[role]))) for row in messages
        }


@lru_cache(maxsize=1000)
def is_name(text: str) -> bool:
    """Whether a text is a name that may leave as it is."""
    return _WORD.fullmatch(text) is not None and _PLACE.fullmatch(text) is None and mask_text(text) == text


def _refuse(table: str, column: str) -> Any:
    raise ValueError(f"{column} of {table} has a value that is no number: nothing is sent")


def _added_up(rows: list[Row]) -> list[Row]:
    """Totals of calls without their commands: rows that are now of the same are one."""
    sums: dict[Row, list[int]] = {}
    for row in rows:
        name = row[:_SUMS]
        known = sums.setdefault(name, [0] * (len(row) - _SUMS))
        sums[name] = [one + other for one, other in zip(known, row[_SUMS:], strict=True)]
    return [(*name, *numbers) for name, numbers in sums.items()]


def columns() -> Mapping[str, frozenset[str]]:
    """Table -> the columns that leave at this level."""
    return _KEPT
