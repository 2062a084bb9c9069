"""A page that has loaded a session and then only applies what is sent of it."""

from __future__ import annotations

import json
from typing import Any

from turnlog.store.base import Store

Loaded = tuple[dict[str, Any], dict[str, Any], dict[tuple[int, str], Any]]
"""Messages by id, their rows by the same, events by position and id."""


class Follower:
    """See the module."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._id = session_id
        self._place = store.last_change()
        self.messages, self.rows, self.events = loaded(store, session_id)

    def follow(self) -> None:
        until = self._store.last_change()
        changes = self._store.session_changes(self._id, self._place, until, limit=10_000)
        assert changes is not None
        for gone in changes.gone_messages:
            self.messages.pop(gone, None)
            self.rows.pop(gone, None)
        for position, gone in changes.gone_events:
            self.events.pop((position, gone), None)
        self.messages |= {message["id"]: message for message in map(json.loads, changes.messages)}
        self.rows |= {row["message_id"]: _row(row) for row in json.loads(changes.rows)}
        self.events |= {_key(event): event for event in json.loads(changes.events)}
        self._place = until


def loaded(store: Store, session_id: str) -> Loaded:
    window = json.loads(store.window(session_id, limit=10_000).to_json())
    return (
        {message["id"]: message for message in window["items"]},
        {row["message_id"]: _row(row) for row in window["rows"]},
        {_key(event): event for event in window["events"]},
    )


def _key(event: dict[str, Any]) -> tuple[int, str]:
    """Where an event is and which it is: a result whose call is not known has no id of its own."""
    known = event["id"] if "id" in event else f"{event['tool_call_id']}:{event['result']['id']}"
    return event.get("position", 0), known


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Without the subagents that its calls started: those are sent as sessions."""
    return {name: value for name, value in row.items() if name != "children"}
