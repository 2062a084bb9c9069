"""Sessions as a transcript database of Inspect Scout: a folder with one Parquet file, a row a session.

Needs the extra `turnlog[parquet]`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from turnlog.errors import ConflictError
from turnlog.exports.source import ExportSource
from turnlog.formats.scout import COLUMNS, ScoutConversation, to_scout
from turnlog.store.base import Store
from turnlog.store.session_secrets import SessionSecrets
from turnlog.store.sqlite.tables import TableWriter, WrittenTable, is_written_table, prepare_folder, refuse_others

FILE: Final = "transcripts.parquet"

_OF_SCOUT: Final = "_index"
"""The folder in which Scout keeps an index of what it has read."""

_INDEX: Final = re.compile(r"(?:index|_manifest)_\d{8}T\d{6}_[0-9A-Za-z]+(?:\.enc)?\.idx")
"""The files of that index: those that Scout reads. Others in the folder are of others."""


class WrittenTranscripts(NamedTuple):
    """What was written."""

    table: WrittenTable
    losses: Counter[str]
    """Kind of what the transcripts do not contain -> how often."""


def write_transcripts(
    store: Store,
    folder: Path,
    session_ids: Sequence[str],
    *,
    redact: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> WrittenTranscripts:
    """Write sessions into a folder, which is made; the file of an earlier export is replaced once all are written.

    Args:
        store: Where they are.
        folder: Where the file goes.
        session_ids: Which; subagents have rows of their own.
        redact: Whether secrets are taken out: all is read once more, before, and what a name or context shows to be a
            secret in one session is masked in all.
        on_progress: Called with the number of sessions that are written, and of all.

    Raises:
        ConflictError: Something in the folder is not of an earlier such export.
        OSError: It cannot be written.
    """
    known = {FILE: is_written_table, _OF_SCOUT: _is_index}
    prepare_folder(folder, known)
    losses: Counter[str] = Counter()
    secrets = SessionSecrets(store, *map(store.session, session_ids)) if redact else None
    with TableWriter(folder / FILE, dict(COLUMNS), None) as writer:
        for done, session_id in enumerate(session_ids):
            on_progress(done, len(session_ids))
            source = ExportSource(store, session_id, secrets=secrets)
            made = to_scout(ScoutConversation(source.session, source.priced(), source.events(), source.read_spill))
            losses.update(kind for kind, _ in made.losses)
            writer.add(list(made.row.values()))
    on_progress(len(session_ids), len(session_ids))
    try:
        refuse_others(folder, known)
    except ConflictError:
        writer.discard()
        raise
    for index in sorted((folder / _OF_SCOUT).glob("*.idx")):
        # It says what the file before had.
        if _INDEX.fullmatch(index.name) and index.is_file() and not index.is_symlink():
            index.unlink()
    return WrittenTranscripts(WrittenTable("transcripts", writer.path, writer.rows, writer.publish()), losses)


def _is_index(entry: Path) -> bool:
    """Whether it is Scout's index of our transcripts: one beside no transcripts, or elsewhere, is of others."""
    return entry.is_dir() and not entry.is_symlink() and entry.with_name(FILE).exists()
