"""The files next to a log: facts about the session (`workspace.yaml`), a plan, and the summaries of compactions.

`workspace.yaml` has one plain or quoted value in each line, so that no library for YAML is needed.
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, LeafTitle, SessionChange
from turnlog.agents.copilot_cli.sources import WORKSPACE, session_id
from turnlog.agents.decoding import aware, branch_of
from turnlog.model.session import title_from

_LINE = re.compile(r"(?P<name>[A-Za-z_]+): (?P<value>\S.*?)\s*")


class CopilotSidecarFold(StatelessFold):
    """Reads a file that is rewritten whole each time."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        changes.counts.events = 1
        if self._source.path.endswith(WORKSPACE):
            _read_workspace(data.decode(errors="replace"), self._source.session_id or session_id(""), changes)
        return changes


def _read_workspace(text: str, session: str, changes: Changes) -> None:
    found = [match for line in text.splitlines() if (match := _LINE.fullmatch(line))]
    facts = {match["name"]: _value(match["value"]) for match in found}
    folder = facts.get("cwd") or None
    change = SessionChange(
        session_id=session,
        project_path=folder,
        cwd=folder,
        git_branch=branch_of(facts.get("branch")),
        # A session that was left before its first prompt has no log.
        first_at=_time(facts.get("created_at")),
        last_at=_time(facts.get("updated_at")),
    )
    name = facts.get("name", "")
    # With the id of a session, a `LeafTitle` is the name that the user gave.
    if name and facts.get("user_named") == "true":
        changes.leaf_titles.append(LeafTitle(record_id=session, title=name))
    elif title := title_from(name):
        # The beginning of the first prompt, or what a model made of it.
        change.titles["generated"] = title
    changes.sessions[session] = change


def _time(written: str | None) -> datetime | None:
    try:
        return None if written is None else aware(msgspec.convert(written, datetime))
    except msgspec.ValidationError:
        return None


def _value(written: str) -> str:
    """A value without its quotes; text that only looks quoted is kept."""
    if written.startswith("'") and written.endswith("'") and len(written) > 1:
        return written[1:-1].replace("''", "'")
    if written.startswith('"'):
        try:
            return msgspec.json.decode(written, type=str)
        except msgspec.MsgspecError:
            return written
    return written
