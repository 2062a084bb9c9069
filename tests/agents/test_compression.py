"""Compressed logs: whole, cut off, damaged, of several frames, and of a generation that grew."""

from __future__ import annotations

import os

import pytest
import zstandard

from turnlog.agents.files import decompress, is_compressed

TEXT = os.urandom(300_000) + b"text " * 50_000
BLOCK = 128 << 10
"""Bytes that zstd packs at a time."""
PACKED = zstandard.ZstdCompressor(level=3).compress(TEXT)


def test_other_files_are_what_they_are() -> None:
    assert decompress("/x/log.jsonl", PACKED) == (PACKED, None)
    assert not is_compressed("/x/log.jsonl")


def test_a_compressed_file_is_what_is_inside() -> None:
    assert is_compressed("/x/log.jsonl.zst")
    assert decompress("/x/log.jsonl.zst", PACKED) == (TEXT, None)
    assert decompress("/x/log.jsonl.zst", b"") == (b"", None)


def test_frames_behind_each_other_are_one_file() -> None:
    more = zstandard.ZstdCompressor().compress(b"more")
    assert decompress("a.zst", PACKED + more + more) == (TEXT + b"moremore", None)


@pytest.mark.parametrize("length", [1, 100, 200_000, len(PACKED) - 1])
def test_what_is_cut_off_is_read_as_far_as_it_goes(length: int) -> None:
    data, problem = decompress("a.zst", PACKED[:length])
    assert TEXT.startswith(data)
    assert len(data) >= (BLOCK if length > BLOCK + 100 else 0)
    assert problem == "cut off at the end of the file"


def test_what_is_damaged_is_read_up_to_there() -> None:
    data, problem = decompress("a.zst", PACKED + b"no frame at all")
    assert data == TEXT
    assert problem
    nothing = decompress("a.zst", b"no frame at all")
    assert nothing.data == b""
    assert nothing.problem
