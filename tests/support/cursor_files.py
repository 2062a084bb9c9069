"""Cursor's databases, made of JSON that people can read: `editor.json` and `chats.json` of a handwritten case.

The shapes are those that other readers of these databases describe (`docs/formats/cursor.md`).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

EDITOR, CHATS = "editor.json", "chats.json"


def write_home(recorded: Path, folder: Path) -> None:
    """Make a home of a case: its files, and databases of the rows in its JSON."""
    shutil.copytree(recorded, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(EDITOR, CHATS))
    if (recorded / EDITOR).exists():
        write_editor(folder, json.loads((recorded / EDITOR).read_text()))
    if (recorded / CHATS).exists():
        for place, chat in json.loads((recorded / CHATS).read_text()).items():
            write_chat(folder / place, chat)


def write_editor(folder: Path, conversations: list[dict[str, Any]]) -> Path:
    """The editor's database: of each conversation its row, and a row for each bubble."""
    path = folder / "globalStorage" / "state.vscdb"
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        connection.execute("CREATE TABLE IF NOT EXISTS cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        connection.execute("INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'not-a-real-token')")
        for conversation in conversations:
            composer = conversation["composer"]
            identity = composer["composerId"]
            rows = {f"composerData:{identity}": composer}
            rows |= {f"bubbleId:{identity}:{bubble['bubbleId']}": bubble for bubble in conversation["bubbles"]}
            for key, value in rows.items():
                connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, json.dumps(value)))
    return path


def write_chat(folder: Path, chat: dict[str, Any]) -> Path:
    """The database of a chat: a blob for each message, and a root that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "store.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS blobs (id TEXT PRIMARY KEY, data BLOB)")
        connection.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)")

        def keep(data: bytes) -> bytes:
            identity = hashlib.sha256(data).digest()
            connection.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (identity.hex(), data))
            return identity

        def listed(messages: list[Any]) -> bytes:
            return b"".join(_field(1, keep(json.dumps(message).encode())) for message in messages)

        root = listed(chat["messages"])
        if "archived" in chat:
            root += _field(13, keep(listed(chat["archived"])))
        root += _field(9, chat.get("workspace", "").encode()) + bytes([0xD0, 0x01, 0x05])
        meta = chat["meta"] | {"latestRootBlobId": keep(root).hex()}
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('0', ?)", (json.dumps(meta).encode().hex(),))
    if "file" in chat:
        (folder / "meta.json").write_text(json.dumps(chat["file"]))
    return path


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes in the wire format of protocol buffers."""
    size = len(data)
    length = bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + data
