"""OpenCode and programs that keep its tables, for the tests that every agent shares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.agent_cases import AgentCase, Answer, CommandLine
from support.opencode_files import read_table_rows, write_database


def _write_recorded(source: Path, folder: Path) -> None:
    write_database(read_table_rows(source / "rows.jsonl"), folder / "opencode.db")


def _call_ids(record: dict[str, Any]) -> list[str]:
    parts: list[dict[str, Any]] = record["parts"] if record["table"] == "message" else []
    return [part["id"] for part in parts if json.loads(part["data"])["type"] == "step-finish"]


CASES = (
    AgentCase(
        name="opencode",
        strays=(
            ("DELETE FROM session", {"message.session_id": 28, "part.session_id": 94}),
            ("UPDATE message SET session_id = '' WHERE id = (SELECT min(id) FROM message)", {"message.session_id": 1}),
        ),
        spoilt=(("DROP TABLE session", "no table session"),),
        home=".local/share/opencode",
        recorded=tuple(f"opencode/1.18.33/{name}" for name in ("basic-chat", "subagent", "compact")),
        answer=Answer("I remember", 15, 3000, 7, 4),
        write_recorded=_write_recorded,
        touch="".join(f"UPDATE {each} SET time_updated = time_updated + 1;" for each in ("session", "message", "part")),
        said="part",
        empty="DELETE FROM message; DELETE FROM part",
        sample_logs="opencode.db",
        call_ids=_call_ids,
        commands=(CommandLine("opencode run --format json -s ses_1 fix it", "fix it", session="ses_1"),),
        subagent_tool="task",
    ),
    *(
        AgentCase(
            name=name,
            home=f".local/share/{program}",
            recorded=tuple(f"opencode/handwritten-{name}/{case}" for case in ("tour", "errors", "compaction")),
            answer=Answer("Resumed: nothing", 1700, 1500, 15, 0),
            sample_logs=f"{program}.db",
        )
        for name, program in (("mimo-code", "mimocode"), ("icodemate", "icodemate"))
    ),
)
