"""What the metadata of an agent's answer says of where it came from; a page sends it back with its next request."""

from __future__ import annotations

from typing import Any, Final, cast

from turnlog.aisdk.building import to_plain
from turnlog.aisdk.parts import UIMessage
from turnlog.store.writing.answers import AgentAnswer

SESSION_KEY: Final = "agentSession"
"""Id of the session, `<agent>:<external id>`."""

RECORD_KEY: Final = "agentRecord"
"""The agent's own id of the answer's last record, where it has one."""

RUN_KEY: Final = "run"
"""Id of the run."""


def answer_of(message: UIMessage) -> AgentAnswer | None:
    """The agent's session and run that a message came from, if it did."""
    metadata: Any = to_plain(message.metadata)
    if message.role != "assistant" or not isinstance(metadata, dict):
        return None
    facts = cast("dict[str, Any]", metadata)
    session, run = facts.get(SESSION_KEY), facts.get(RUN_KEY)
    if not isinstance(session, str):
        return None
    return AgentAnswer(session, run if isinstance(run, str) else None)
