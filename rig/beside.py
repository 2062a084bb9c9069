"""Compares what turnlog, agentsview and ccusage read of recorded runs with what happened in them.

    python rig/beside.py RECORDINGS --agentsview PROGRAM --ccusage PROGRAM > table.md

RECORDINGS has a folder for each run (rig/recorded_runs.py). Each is read alone, in a HOME of its own. The result is the
table of docs/formats/side-by-side.md. Nothing is guessed: a cell is what the program printed or wrote to its database.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from recorded_runs import TrueCall, Truth, logs_of, read_truth, recordings

SECONDS = 120
PRICES = {
    "kilo/7.7.7": (1.0, 0.1, 2.0),
    "openclaw/2026.9.6": (1.0, 0.1, 2.0),
    "pi/0.73.1-old-scope": (1.0, 0.1, 2.0),
    "pi/0.87.1": (1.0, 0.1, 2.0),
}
"""Dollars for a million tokens of input, cache and output, where the agent's settings named a price."""
LISTED = {
    "cline/3.0.65-anthropic": 0.020475,
    "copilot/1.0.102": 0.02225,
    "copilot/1.0.102-anthropic": 0.020475,
    "copilot/1.0.102-subagent-responses": 0.00385,
}
"""Dollars of the runs of a model that has a price: claude-sonnet-4-5 (3, 0.3 and 15, cache written 3.75), gpt-5.4
(2.5, 0.25 and 15)."""


@dataclass(frozen=True, kw_only=True)
class ReadCall:
    """A call as a program has it."""

    tool: str
    input: Any
    output: str
    failed: bool


@dataclass(kw_only=True)
class Reading:
    """What a program has of a recording. What it has no place for is None."""

    words: list[str] | None = None
    calls: list[ReadCall] | None = None
    tokens: tuple[int, int, int] | None = None
    dollars: str = ""


Reader: TypeAlias = Callable[[Path], Reading]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Compare three readers of recorded runs with the runs' scripts.")
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--turnlog", default=shutil.which("turnlog", path=Path(sys.executable).parent) or "turnlog")
    parser.add_argument("--agentsview", default="agentsview")
    parser.add_argument("--ccusage", default="ccusage")
    parser.add_argument("--only", default="", help="a part of the names of the recordings to read")
    given = parser.parse_args(words)
    readers: dict[str, Reader] = {
        "turnlog": lambda home: _of_turnlog(given.turnlog, home),
        "agentsview": lambda home: _of_agentsview(given.agentsview, home),
        "ccusage": lambda home: _of_ccusage(given.ccusage, home),
    }
    rows = [row for recording in recordings(given.recordings) if given.only in str(recording)
            for row in _rows(recording, readers)]  # fmt: skip
    for title, columns in _TABLES.items():
        print(f"\n{title}\n\n| log | script | {' | '.join(readers)} |")
        print("|---" * (len(readers) + 2) + "|")
        for name, wanted, cells in rows:
            compared = [_cell(columns, wanted, cell) for cell in cells]
            if columns != ("dollars",) or wanted["dollars"]:
                print(f"| {' | '.join([name, _shown(columns, wanted), *compared])} |")
    return 0


_CONVERSATION = ("texts", "calls", "results", "failures")
_TABLES: dict[str, tuple[str, ...]] = {
    "Tokens": ("tokens",),
    "Prompts and texts of the model · calls · results of calls · commands that are known to have failed": _CONVERSATION,
    "Dollars, where there is a price": ("dollars",),
}
Cells: TypeAlias = dict[str, str]


def _rows(recording: Path, readers: dict[str, Reader]) -> Iterator[tuple[str, Cells, list[Cells]]]:
    name = f"{recording.parent.name}/{recording.name}"
    truth = read_truth(recording)
    cells: list[Cells] = []
    for read in readers.values():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            shutil.copytree(logs_of(recording), folder, dirs_exist_ok=True)
            cells.append(_found_cells(truth, read(Path(folder))))
    yield name, _wanted(name, truth), cells


def _shown(columns: tuple[str, ...], cells: Cells) -> str:
    return " · ".join(cells[column] for column in columns)


def _cell(columns: tuple[str, ...], wanted: Cells, cells: Cells) -> str:
    nothing = ("",) if columns == ("dollars",) else ("", "0")
    if all(cells[column] in nothing for column in columns):
        return "not read"
    shown = _shown(columns, cells)
    return "equal" if shown == _shown(columns, wanted) else shown


def _wanted(name: str, truth: Truth) -> Cells:
    cost = LISTED.get(name)
    if name in PRICES:
        cost = sum(price * used for price, used in zip(PRICES[name], truth.tokens, strict=True)) / 1e6
    return {
        "tokens": _tokens(truth.tokens),
        "texts": str(len(truth.prompts) + len(truth.words)),
        "calls": str(len(truth.calls)),
        "results": str(sum(call.output is not None for call in truth.calls)),
        "failures": str(sum(call.fails for call in truth.calls)),
        "dollars": _dollars(cost),
    }


def _found_cells(truth: Truth, reading: Reading) -> Cells:
    pairs = _pair(truth.calls, reading.calls or [])
    return {
        "tokens": "" if not reading.tokens or not sum(reading.tokens) else _tokens(reading.tokens),
        "texts": str(_found([*truth.prompts, *truth.words], reading.words or [])),
        "calls": str(len(pairs)),
        "results": str(sum(_same_output(true.output, read.output) for true, read in pairs)),
        "failures": str(sum(true.fails and read.failed for true, read in pairs)),
        "dollars": reading.dollars,
    }


def _dollars(cost: float | None) -> str:
    return f"{cost:.6f}" if cost else ""


def _tokens(tokens: tuple[int, int, int]) -> str:
    return f"{tokens[0]:,} + {tokens[1]:,} → {tokens[2]:,}"


def _found(wanted: list[str], words: list[str]) -> int:
    """How many of the script's texts are in one of a program's, each at another place."""
    left = list(words)
    count = 0
    for text in wanted:
        place = next((index for index, each in enumerate(left) if text in each), None)
        if place is not None:
            count += 1
            left[place] = left[place].replace(text, "", 1)
    return count


def _pair(wanted: tuple[TrueCall, ...], calls: list[ReadCall]) -> list[tuple[TrueCall, ReadCall]]:
    left = list(calls)
    pairs: list[tuple[TrueCall, ReadCall]] = []
    for true in wanted:
        read = next((each for each in left if (each.tool, each.input) == (true.tool, true.input)), None)
        if read is not None:
            left.remove(read)
            pairs.append((true, read))
    return pairs


def _same_output(sent: str | None, kept: str) -> bool:
    """Whether what a program shows holds a line of what the model was sent, or is a part of it."""
    if sent is None or not kept.strip():
        return False
    plain, shown = (text.replace("\\n", "\n").strip() for text in (sent, kept))
    return shown in plain or any(len(line.strip()) > 2 and line.strip() in shown for line in plain.splitlines())


def _ask(program: str, home: Path, *arguments: str) -> Any:
    """What a program prints as JSON; None if it prints something else, or too late."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC"}
    # Aider keeps its logs in projects, which both programs must be told.
    environment |= {"TURNLOG_AIDER_DIR": str(home), "AIDER_DIR": str(home)}
    try:
        printed = subprocess.run(
            [program, *arguments], env=environment, cwd=home, capture_output=True, timeout=SECONDS, check=False
        )
        return json.loads(printed.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return None


def _words_of(result: dict[str, Any]) -> str:
    """What a result says: its texts, or those of its error where it has no others."""
    texts = "\n".join(part.get("text", "") for part in result.get("content", []))
    return texts or result.get("error_text") or ""


_PARTS = "SELECT type, text, tool_name, tool_state, exit_code, content FROM v_parts"


def _of_turnlog(program: str, home: Path) -> Reading:
    reading = Reading(words=[], calls=[])
    for kind, text, tool, state, code, content in _ask(program, home, "query", "--json", _PARTS)["rows"]:
        if kind != "tool-call":
            reading.words = [*(reading.words or []), text or ""]
            continue
        results = json.loads(content).get("results", [])
        output = "\n".join(map(_words_of, results))
        failed = state == "output-error" or bool(code)
        reading.calls = [*(reading.calls or []), ReadCall(tool=tool, input=_json(text), output=output, failed=failed)]
    totals = _ask(program, home, "usage", "--json")["totals"]
    written = totals["cache_write"] + totals["cache_write_5m"] + totals["cache_write_1h"]
    reading.tokens = (totals["input"], totals["cache_read"] + written, totals["output"] + totals["reasoning"])
    reading.dollars = _dollars(totals["reported_cost"] or totals["cost"])
    return reading


_CALLS = """
    SELECT tool_name, input_json, coalesce(nullif(result_content, ''),
           (SELECT group_concat(content, char(10)) FROM tool_result_events AS event
            WHERE event.tool_use_id = call.tool_use_id AND event.session_id = call.session_id)),
           observed_outcome = 'errored'
           OR EXISTS (SELECT 1 FROM tool_result_events AS event
                      WHERE event.tool_use_id = call.tool_use_id AND event.session_id = call.session_id
                      AND event.status IN ('error', 'errored', 'failed'))
    FROM tool_calls AS call ORDER BY id
"""


def _of_agentsview(program: str, home: Path) -> Reading:
    _ask(program, home, "sync")
    usage = _ask(program, home, "usage", "daily", "--json") or {}
    _ask(program, home, "daemon", "stop")
    reading = Reading()
    database = home / ".agentsview/sessions.db"
    if database.exists():
        with closing(sqlite3.connect(database)) as connection:
            rows = connection.execute("SELECT content, thinking_text FROM messages ORDER BY session_id, ordinal")
            reading.words = [text for row in rows for text in row]
            reading.calls = [
                ReadCall(tool=tool, input=_json(text), output=output or "", failed=bool(failed))
                for tool, text, output, failed in connection.execute(_CALLS)
            ]
    totals = usage.get("totals")
    if totals:
        reading.tokens = _camel(totals)
        reading.dollars = _dollars(totals["totalCost"]["microdollars"] / 1e6) or "0"
    return reading


def _of_ccusage(program: str, home: Path) -> Reading:
    totals = (_ask(program, home, "daily", "--json", "--offline") or {}).get("totals")
    if not totals or not totals["totalTokens"]:
        return Reading()
    return Reading(tokens=_camel(totals), dollars=_dollars(totals["totalCost"]) or "0")


def _camel(totals: dict[str, int]) -> tuple[int, int, int]:
    cached = totals["cacheReadTokens"] + totals["cacheCreationTokens"]
    return totals["inputTokens"], cached, totals["outputTokens"]


def _json(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
