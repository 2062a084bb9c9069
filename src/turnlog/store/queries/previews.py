"""What a list shows of sessions besides themselves, for a whole page in one question."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from turnlog.store.base import SessionPreview


def load_previews(connection: sqlite3.Connection, session_ids: Iterable[str]) -> dict[str, SessionPreview]:
    """Previews by session id; a session that is not stored is left out."""
    wanted = [session_id.partition(":")[::2] for session_id in session_ids]
    # The index on ids begins with the owner: a look-up for each of the few owners instead of a scan of all sessions.
    rows = connection.execute(
        "SELECT s.agent || ':' || s.external_id,"
        " (SELECT m.text_preview FROM memberships p CROSS JOIN messages m ON m.key = p.message_key"
        "  WHERE p.session_key = s.key AND m.origin IN ('prompt', 'subagent_prompt') AND m.text_preview <> ''"
        "  ORDER BY p.position LIMIT 1),"
        " (SELECT count(*) FROM sessions c WHERE c.parent_key = s.key)"
        " FROM json_each(?) w CROSS JOIN owners o CROSS JOIN sessions s ON s.owner_key = o.key"
        " AND s.agent = json_extract(w.value, '$[0]') AND s.external_id = json_extract(w.value, '$[1]')",
        (json.dumps(wanted),),
    )
    return {session_id: SessionPreview(prompt, children) for session_id, prompt, children in rows}
