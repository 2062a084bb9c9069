"""Cursor, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, CommandLine
from support.cursor_files import write_home

CASES = (
    AgentCase(
        name="cursor",
        home=".cursor",
        recorded=("cursor/handwritten/editor",),
        answer=Answer("The notes hold", 2100, 0, 20, 0),
        lacks=frozenset({"stop reasons", "project in the path", "run events", "one message per record"}),
        write_recorded=write_home,
        is_word=True,
        sample_cwd="/home/dev/work",
        sample_branch="main",
        empty="""UPDATE cursorDiskKV SET value = json_set(value, '$.fullConversationHeadersOnly', json('[]'))
            WHERE key LIKE 'composerData:%';
            DELETE FROM cursorDiskKV WHERE key LIKE 'bubbleId:%'""",
        touch="""UPDATE cursorDiskKV SET value = json_set(value, '$.lastUpdatedAt', 1795780800000)
            WHERE key LIKE 'composerData:%'""",
        sample_logs="globalStorage",
        commands=(CommandLine("cursor-agent --resume 7f1c -m gpt-5 'Fix it'", "Fix it", "gpt-5", session="7f1c"),),
        subagent_tool="task_v2",
    ),
)
