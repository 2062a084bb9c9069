"""What a membership keeps of its records comes back as it was."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.store.places import pack_ids, unpack_ids

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
