"""Which sessions lists have, as conditions of SQL about a session `s`. They hide only sessions without messages."""

from __future__ import annotations

from typing import Final

from turnlog.agents.base import KNOWN_FROM
from turnlog.store.keys import OWN

NOT_NAMED_TWICE: Final = (
    "NOT (s.relationship IS 'subagent' AND s.messages = 0 AND s.key IN (SELECT session_key FROM superseded))"
)
"""No subagent that a stream named after its call and that has a log under another id (`reconcile.lesser_sources`)."""

NOT_ANSWERED_ELSEWHERE: Final = (
    "NOT (s.native = 1 AND s.messages = 0 AND s.key IN (SELECT session_key FROM superseded))"
)
"""No chat whose answers are all in logs of agents (`store.reconcile.lesser_sources`)."""

USED: Final = (
    f'NOT (s.messages = 0 AND s.metadata LIKE \'%"{KNOWN_FROM}":"hooks"%\' AND EXISTS'
    " (SELECT 1 FROM events e WHERE e.session_key = s.key AND e.kind = 'hook:SessionEnd'))"
)
"""No session that was opened and closed without a prompt: only hooks report it, no log is ever written."""

LISTED: Final = f"{OWN} AND {USED} AND {NOT_ANSWERED_ELSEWHERE} AND {NOT_NAMED_TWICE}"
"""A session that a list with subagents has."""
