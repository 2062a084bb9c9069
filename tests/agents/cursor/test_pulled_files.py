"""Names of Cursor's files count only where Cursor has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.pulled_logs import written
from turnlog.errors import StoreError

ID = "55aa150a-c5c2-414f-8f06-dd150a493bb0"
LINE = b'{"role":"user","message":{"content":"hi"}}\n'


def test_a_transcript_is_written_in_its_place(tmp_path: Path) -> None:
    place = f"projects/work/agent-transcripts/{ID}.jsonl"
    assert written("cursor", tmp_path, (place, LINE)) == ({place: LINE}, {})


@pytest.mark.parametrize(
    "place",
    [
        f"agent-transcripts/{ID}.jsonl",
        f"extensions/agent-transcripts/{ID}.jsonl",
        f"projects/work/x/agent-transcripts/{ID}.jsonl",
        f"projects/work/agent-transcripts/a/b/c/{ID}.jsonl",
        "rules/state.vscdb",
        "a/b/globalStorage/state.vscdb",
        f"x/chats/w/{ID}/store.db",
        f"x/chats/w/{ID}/meta.json",
    ],
)
def test_elsewhere_it_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(StoreError, match="no log of"):
        written("cursor", tmp_path, (place, LINE))
