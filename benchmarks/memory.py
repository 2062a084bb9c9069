"""Peak memory and speed of `turnlog sync` on logs of extreme shapes: a million tiny records, one line of 200 MB.

    python benchmarks/memory.py [--only tiny-prompts line-result] [--megabytes 200] [--records 1000000] [--work FOLDER]

Each log is written into a home of its own and read into an empty data folder. Memory is the largest sum of resident
sizes of all processes at one instant. It is printed with the bound that it should meet: `MOST_SMALL` for any number of
small records, `MOST_TIMES` times the record and `PROGRAM` for a large one.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from measure import bare_environment, find_turnlog, run

MOST_SMALL = 300e6
"""Bytes, of all processes together."""

MOST_TIMES = 3.2
"""Times a large record, over `PROGRAM`."""

PROGRAM = 80e6
"""Bytes of the processes without a log."""

SESSION = "11111111-1111-4111-8111-111111111111"
CLAUDE_LOG = f".claude/projects/-home-me-app/{SESSION}.jsonl"
CODEX_LOG = f".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-{SESSION}.jsonl"


class Shape(NamedTuple):
    """A log: where it lies in the home, and its lines for a number of records or of megabytes."""

    path: str
    lines: Callable[[int], Iterator[bytes]]
    is_one_line: bool


def tiny_prompts(count: int) -> Iterator[bytes]:
    parent = b"null"
    for number in range(count):
        id = b'"00000000-0000-4000-8000-%012x"' % number
        yield (
            b'{"type":"user","uuid":%b,"parentUuid":%b,"sessionId":"%b","timestamp":"%b",'
            b'"message":{"role":"user","content":"x"}}\n' % (id, parent, SESSION.encode(), _time(number))
        )
        parent = id


def unknown_kinds(count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b'{"type":"x"}\n'


def codex_items(count: int) -> Iterator[bytes]:
    yield b'{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":%b}\n' % _codex_meta()
    for number in range(count):
        yield (
            b'{"timestamp":"%b","type":"response_item","payload":{"type":"message","role":"user",'
            b'"content":[{"type":"input_text","text":"x"}]}}\n' % _time(number)
        )


def line_prompt(megabytes: int) -> Iterator[bytes]:
    yield b'{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"%b",' % SESSION.encode()
    yield b'"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"'
    yield from _text(megabytes)
    yield b'"}}\n'


def line_result(megabytes: int) -> Iterator[bytes]:
    place = b'"sessionId":"%b","timestamp":"2026-01-02T03:04:05.000Z"' % SESSION.encode()
    yield b'{"type":"assistant","uuid":"a1","parentUuid":null,%b,"message":{"id":"m1","role":"assistant",' % place
    yield b'"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cat"}}]}}\n'
    yield b'{"type":"user","uuid":"u1","parentUuid":"a1",%b,"message":{"role":"user",' % place
    yield b'"content":[{"type":"tool_result","tool_use_id":"t1","content":"'
    yield from _text(megabytes)
    yield b'"}]}}\n'


def line_unknown(megabytes: int) -> Iterator[bytes]:
    yield b'{"type":"x","data":"'
    yield from _text(megabytes)
    yield b'"}\n'


def codex_output(megabytes: int) -> Iterator[bytes]:
    yield b'{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":%b}\n' % _codex_meta()
    yield b'{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"function_call",'
    yield b'"name":"shell","arguments":"{}","call_id":"c1"}}\n'
    yield b'{"timestamp":"2026-01-02T03:04:07.000Z","type":"response_item","payload":{"type":"function_call_output",'
    yield b'"call_id":"c1","output":"'
    yield from _text(megabytes)
    yield b'"}}\n'


SHAPES = {
    "tiny-prompts": Shape(CLAUDE_LOG, tiny_prompts, is_one_line=False),
    "unknown-kinds": Shape(CLAUDE_LOG, unknown_kinds, is_one_line=False),
    "codex-items": Shape(CODEX_LOG, codex_items, is_one_line=False),
    "line-prompt": Shape(CLAUDE_LOG, line_prompt, is_one_line=True),
    "line-result": Shape(CLAUDE_LOG, line_result, is_one_line=True),
    "line-unknown": Shape(CLAUDE_LOG, line_unknown, is_one_line=True),
    "codex-output": Shape(CODEX_LOG, codex_output, is_one_line=True),
}


def _time(number: int) -> bytes:
    minutes, seconds = divmod(number, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return b"2026-01-%02dT%02d:%02d:%02d.000Z" % (2 + days % 28, hours, minutes, seconds)


def _codex_meta() -> bytes:
    return (
        b'{"id":"%b","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me/app","originator":"codex_cli_rs",'
        b'"cli_version":"0.60.0","instructions":null}' % SESSION.encode()
    )


def _text(megabytes: int) -> Iterator[bytes]:
    """JSON of lines of random words, in pieces of a megabyte. They repeat where zstd no longer looks for them."""
    source = random.Random(megabytes)
    words = [b"%x" % source.getrandbits(source.randrange(4, 40)) for _ in range(4096)]
    lines = b"\\n".join([b" ".join(source.choices(words, k=12)) for _ in range(150_000)])
    for number in range(megabytes):
        start = number % 8 * 1_000_000
        yield lines[start : start + 999_999].rstrip(b"\\") + b"."


def write_home(home: Path, shape: Shape, amount: int) -> int:
    """Write the shape's log below a home; return its bytes."""
    path = home / shape.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(shape.lines(amount))
    return path.stat().st_size


def measure(name: str, shape: Shape, amount: int, turnlog: Path, work: Path) -> None:
    home, data = work / f"home-{name}", work / f"data-{name}"
    shutil.rmtree(data, ignore_errors=True)
    size = write_home(home, shape, amount)
    result = run([str(turnlog), "sync"], bare_environment(home, TURNLOG_DATA_DIR=data))
    peak = result.peak_rss or 0
    most = PROGRAM + MOST_TIMES * size if shape.is_one_line else MOST_SMALL
    verdict = "kept" if peak <= most else "MISSED"
    times = f"{peak / size:.1f} times the line, " if shape.is_one_line else ""
    speed = f"{size / 1e6 / result.wall:.0f} MB/s" if shape.is_one_line else f"{amount / result.wall:,.0f} records/s"
    print(
        f"{name:14} {size / 1e6:6.1f} MB  peak {peak / 1e6:6.0f} MB ({times}<= {most / 1e6:.0f} MB: {verdict})"
        f"  wall {result.wall:.2f} s, CPU {result.cpu:.2f} s, {speed}",
        flush=True,
    )
    shutil.rmtree(home)
    shutil.rmtree(data)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure memory and speed of turnlog sync on logs of extreme shapes.")
    parser.add_argument("--records", type=int, default=1_000_000, help="records of a log of small ones")
    parser.add_argument("--megabytes", type=int, default=200, help="size of a large line, in millions of bytes")
    parser.add_argument("--turnlog", type=Path, default=find_turnlog(), help="the command to measure")
    parser.add_argument("--work", type=Path, help="folder for logs and data; a temporary one when not given")
    parser.add_argument("--only", nargs="+", choices=SHAPES, default=list(SHAPES))
    options = parser.parse_args()
    if options.turnlog is None:
        sys.exit("turnlog is not installed beside this Python; give --turnlog")
    with tempfile.TemporaryDirectory(prefix="turnlog-memory-") as temporary:
        work: Path = (options.work or Path(temporary)).resolve()
        for name in options.only:
            shape = SHAPES[name]
            amount = options.megabytes if shape.is_one_line else options.records
            measure(name, shape, amount, options.turnlog.absolute(), work)


if __name__ == "__main__":
    main()
