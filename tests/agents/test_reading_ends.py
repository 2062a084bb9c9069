"""Reading the ends of many files, of which the disk is told before."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from turnlog.agents import files
from turnlog.agents.files import read_ends


def test_each_end_comes_in_its_place_and_what_is_no_file_is_empty(tmp_path: Path) -> None:
    count = 2 * files._OPEN_AT_ONCE + 3  # pyright: ignore[reportPrivateUsage]
    paths = [tmp_path / f"{number}.jsonl" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(f"begin {number} end".encode())
    paths[1].unlink()
    paths[2].unlink()
    paths[2].symlink_to(paths[3])
    paths[4].unlink()
    os.mkfifo(paths[4])
    paths[5].write_bytes(b"")
    paths[6].write_bytes(b"end")
    paths[7].unlink()
    paths[7].mkdir()
    missing = {1: b"", 2: b"", 4: b"", 5: b"", 6: b"end", 7: b""}
    descriptors = len(list(Path("/dev/fd").iterdir()))
    expected = [missing.get(number, f"{number} end"[-5:].encode()) for number in range(count)]
    assert list(read_ends([str(path) for path in paths], 5)) == expected
    assert len(list(Path("/dev/fd").iterdir())) == descriptors


@pytest.mark.skipif(sys.platform == "darwin", reason="the system cannot be asked")
def test_the_disk_is_asked_for_all_before_the_first_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}.jsonl" for number in range(3)]
    for path in paths:
        path.write_bytes(b"x" * 100)
    said: list[str] = []
    ask, read = os.posix_fadvise, os.read

    def note_ask(*arguments: Any) -> None:
        said.append(f"ask {arguments[1:3]}")
        ask(*arguments)

    def note_read(*arguments: Any) -> bytes:
        said.append("read")
        return read(*arguments)

    monkeypatch.setattr(os, "posix_fadvise", note_ask)
    monkeypatch.setattr(os, "read", note_read)
    assert list(read_ends([str(path) for path in paths], 10)) == [b"x" * 10] * 3
    assert said == ["ask (90, 10)"] * 3 + ["read"] * 3
    monkeypatch.delattr(os, "posix_fadvise")
    assert list(read_ends([str(path) for path in paths], 10)) == [b"x" * 10] * 3
