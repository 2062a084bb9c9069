"""What a membership keeps of its records comes back as it was."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.plain_agent import Log, session_id
from support.plain_store import read_home
from support.store_dump import check_integrity, open_read_only
from turnlog.model import Message
from turnlog.store import open_store
from turnlog.store.forget import forget_for_good
from turnlog.store.places import pack_ids, pack_parent, unpack_ids

OWN = "064d3527-bec2-433a-baf4-56dbf05f5a64"
UUID = "146c57db-3f35-430c-8e71-82f56c46c1e8"
WORDS = st.sampled_from([OWN, UUID, "msg_01", "#7", "", f"{OWN}:1"])


@given(st.lists(WORDS, unique=True), WORDS)
def test_ids_come_back(ids: list[str], own: str) -> None:
    assert unpack_ids(pack_ids(ids, own), own) == tuple(ids)


@pytest.mark.parametrize(
    ("ids", "size"), [((OWN,), 0), (("not a uuid",), 13), ((UUID, OWN), 33), (("own", "#7"), 6), ((), None)]
)
def test_a_message_does_not_repeat_its_own(ids: tuple[str, ...], size: int | None) -> None:
    packed = pack_ids(ids, "own" if "own" in ids else OWN)
    assert (None if packed is None else len(packed)) == size


def test_ids_of_an_older_version_are_read() -> None:
    """It wrote out the message's own id too."""
    assert unpack_ids(b"W" + msgspec.msgpack.encode((OWN, "#7")), OWN) == (OWN, "#7")
    assert unpack_ids(b"U" + bytes.fromhex(OWN.replace("-", "")), OWN) == (OWN,)


@pytest.mark.parametrize(
    ("parent", "before", "packed"),
    [("a", "a", ""), ("a", "b", "a"), ("a", None, "a"), (None, "a", None), (None, None, None), ("", "", None)],
)
def test_a_parent_that_was_stored_just_before_takes_nothing(
    parent: str | None, before: str | None, packed: str | None
) -> None:
    assert pack_parent(parent, before) == packed


def parents(path: Path, name: str) -> dict[str, str | None]:
    with open_store(path) as store:
        return {placed.message.id: placed.membership.parent_id for placed in store.messages(session_id(name))}


def stored_parents(path: Path) -> list[str | None]:
    with closing(open_read_only(path)) as connection:
        check_integrity(connection)
        return [row[0] for row in connection.execute("SELECT parent_id FROM memberships ORDER BY 1")]


def test_who_loses_the_message_before_still_knows_its_parent(tmp_path: Path) -> None:
    """R-S29: what is forgotten takes nothing from what another session keeps."""
    home, path = tmp_path / "home", tmp_path / "turnlog.db"
    home.mkdir()
    log, fork = Log(home, "one"), Log(home, "two")
    for number in range(4):
        message = Message(id=f"m{number}", role="user")
        parent = {"parent_id": f"m{number - 1}"} if number else {}
        log.message(message, **parent)
        if number > 1:
            fork.message(message, copied=True, **parent)
    fork.message(Message(id="own", role="user"), parent_id="m1")
    read_home(path, home)
    whole = {"m0": None, "m1": "m0", "m2": "m1", "m3": "m2"}
    shared = {"m2": "m1", "m3": "m2", "own": "m1"}
    assert (parents(path, "one"), parents(path, "two")) == (whole, shared)
    assert "" in stored_parents(path)
    forget_for_good(path, session_id("one"))
    assert parents(path, "two") == shared
    stored_parents(path)
