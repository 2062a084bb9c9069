"""Images on this machine are in a request only if they are the ones that were shown."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from support.klaude_files import SESSION, answer, lines, record, text
from support.plain_store import read_home
from support.provider_messages import PNG
from turnlog.agents import agent
from turnlog.exports import export_session
from turnlog.exports.formats import load_local_file
from turnlog.model import FilePart
from turnlog.store import open_store

DIGEST = hashlib.sha256(PNG).hexdigest()


def shown(path: object, digest: Any = DIGEST) -> FilePart:
    metadata: dict[str, Any] = {} if digest is None else {"klaude": {"sha256": digest}}
    return FilePart(media_type="image/png", url=f"file://{path}", metadata=metadata)


def test_a_file_is_read_where_the_log_has_its_hash(tmp_path: Path) -> None:
    image = tmp_path / "ü x.png"
    image.write_bytes(PNG)
    assert load_local_file(shown(image)) == PNG
    assert load_local_file(shown(image, DIGEST.upper())) == PNG
    assert load_local_file(shown(tmp_path / "gone.png")) is None
    image.write_bytes(PNG + b"another")
    assert load_local_file(shown(image)) is None


@pytest.mark.parametrize("digest", [None, "", 5, "0" * 64])
def test_a_path_alone_is_not_believed(tmp_path: Path, digest: Any) -> None:
    (tmp_path / "x.png").write_bytes(PNG)
    assert load_local_file(shown(tmp_path / "x.png", digest)) is None
    assert load_local_file(shown("\0", DIGEST)) is None
    assert load_local_file(FilePart(media_type="image/png", url="https://e/x.png")) is None


def test_an_exported_request_has_the_image(tmp_path: Path) -> None:
    image = tmp_path / "x.png"
    image.write_bytes(PNG)
    part = {"type": "image_file", "file_path": str(image), "mime_type": "image/png", "sha256": DIGEST}
    log = tmp_path / f"home/projects/p/sessions/{SESSION}/events.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(
        lines(record("UserMessage", id="u", role="user", parts=[text("see"), part]), answer("a", text("seen")))
    )
    read_home(tmp_path / "turnlog.db", tmp_path / "home", agent("klaude"))
    with open_store(tmp_path / "turnlog.db") as store:
        made = export_session(store, f"klaude:{SESSION}", "anthropic", model="m")
    blocks = json.loads(made.data)["messages"][0]["content"]
    assert [block["type"] for block in blocks] == ["text", "image"]
    assert base64.b64decode(blocks[1]["source"]["data"]) == PNG
    assert made.losses == ()
