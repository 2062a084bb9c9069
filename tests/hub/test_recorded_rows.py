"""What machines send of real sessions has only values that the hub takes: nobody's push stops at an unusual log."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from support.agent_cases import CASES
from support.profiles import THOROUGH, some_of
from turnlog.agents import agent
from turnlog.hub.sync.admission import SendingMachine, admit
from turnlog.hub.sync.columns import check_json
from turnlog.hub.sync.decoding import decode_batch
from turnlog.store import zstd
from turnlog.store.feed import taking
from turnlog.store.feed.owners import Owner
from turnlog.store.feed.reading import read_batch, snapshot
from turnlog.store.feed.values import FeedPosition
from turnlog.sync.syncer import sync

LAPTOP = SendingMachine(Owner("ana", "laptop"), "laptop")


def test_every_recorded_session_of_every_agent_is_taken(tmp_path: Path) -> None:
    assert sum(_taken_of(name, tmp_path) for name in some_of([*CASES])) > (500 if THOROUGH else 0)


def _taken_of(name: str, tmp_path: Path) -> int:
    messages = 0
    for number, recorded in enumerate(CASES[name].recorded):
        folder = tmp_path / f"{name}-{number}"
        home = CASES[name].write_home(recorded, folder / "home")
        sync(folder / "store.db", roots=[home], agents=[agent(name)])
        messages += _taken(folder / "store.db")
        shutil.rmtree(folder)
    return messages


def _taken(store: Path) -> int:
    found, after = 0, FeedPosition()
    with snapshot(store) as connection:
        while batch := read_batch(connection, after):
            # Contents do not come with the batch.
            blobs = [(*row[:3], 0, b"") for row in batch.rows["blobs"]]
            sent = msgspec.structs.replace(batch, rows={**batch.rows, "blobs": blobs})
            decoded = admit(decode_batch(taking.encode(sent), lambda size: None), LAPTOP)
            for body in decoded.bodies.values():
                check_json(zstd.decompress(body))
            found, after = found + len(decoded.bodies), batch.until
    return found
