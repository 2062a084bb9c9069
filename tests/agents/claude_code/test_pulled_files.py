"""Files of a session's folder that a hub sends: nothing that Claude Code runs, or reads as instructions, is written."""

from __future__ import annotations

from pathlib import Path

from support.pulled_logs import written
from turnlog.hub.machine.pulling import ALONE, OBEYED

ID = "11111111-1111-4111-8111-111111111111"
PROJECT = "projects/-work"
FOLDER = f"{PROJECT}/{ID}"
LOG = f"{PROJECT}/{ID}.jsonl", b"{}\n"


def test_outputs_and_runs_are_written_and_no_script_or_instructions(tmp_path: Path) -> None:
    harmless = dict.fromkeys(
        (
            *("tool-results/b4y.txt", "tool-results/mcp-mock-blob-1.png", "workflows/wf_521c10a9-ac4.json"),
            *("subagents/agent-a1.meta.json", "custom-title.json", "subagents/workflows/wf_1/journal.jsonl"),
        ),
        b"{}",
    )
    obeyed = (
        *("workflows/scripts/two-wf_521c10a9-ac4.js", "workflows/two.js", "workflows/CLAUDE.md", "workflows/.mcp.json"),
        *("tool-results/CLAUDE.md", "tool-results/claude.local.MD", "tool-results/AGENTS.md", "tool-results/.envrc"),
    )
    files = {**harmless, **dict.fromkeys(obeyed, b"evil")}
    agent = f"{FOLDER}/subagents/agent-a1.jsonl", b"{}\n"
    kept, left_out = written(
        "claude-code", tmp_path, LOG, agent, *((f"{FOLDER}/{name}", data) for name, data in files.items())
    )
    assert left_out == {f"{FOLDER}/{name}": OBEYED for name in obeyed}
    assert kept == {**dict([LOG, agent]), **{f"{FOLDER}/{name}": data for name, data in harmless.items()}}


def test_nothing_is_written_into_the_folder_of_another_session(tmp_path: Path) -> None:
    other = f"{PROJECT}/22222222-2222-4222-8222-222222222222/tool-results/b4y.txt"
    # The log of an older subagent does not say by its place whose it is.
    agent = f"{PROJECT}/agent-a1.jsonl", b"{}\n"
    kept, left_out = written("claude-code", tmp_path, LOG, agent, (other, b"evil"))
    assert (kept, left_out) == (dict([LOG, agent]), {other: ALONE})
