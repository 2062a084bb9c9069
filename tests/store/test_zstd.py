"""zstd for any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from turnlog.store import zstd


@given(st.lists(st.binary(min_size=1, max_size=200), min_size=1, max_size=20))
def test_frames_that_are_made_together_are_those_that_are_made_alone(pieces: list[bytes]) -> None:
    frames = zstd.compress_all(pieces)
    assert [zstd.decompress(frames[index].tobytes()) for index in range(len(pieces))] == pieces


def test_threads_do_not_disturb_each_other() -> None:
    """Two readers at once used to share one decompressor."""
    pieces = [bytes([number]) * 200_000 for number in range(8)]
    frames = [zstd.compress(piece) for piece in pieces]

    def read(start: int) -> bool:
        return all(zstd.decompress(frames[(start + n) % 8]) == pieces[(start + n) % 8] for n in range(200))

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, range(4))) == [True] * 4
