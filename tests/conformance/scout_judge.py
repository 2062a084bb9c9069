"""Asks Inspect Scout what it reads in a folder that was exported: every transcript, with every message.

    python3.12 -m venv /tmp/scout && /tmp/scout/bin/pip install inspect-scout
    turnlog export --as scout transcripts/
    /tmp/scout/bin/python tests/conformance/scout_judge.py transcripts/

The package has half a gigabyte of dependencies, so the tests check its rules by themselves.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from importlib import import_module
from typing import Any


async def read(folder: str) -> None:
    """Print what Scout's own reader makes of it; exit code 1 where it refuses the columns."""
    scout: Any = import_module("inspect_scout")
    schema: Any = import_module("inspect_scout._transcript.database.schema")
    errors = schema.validate_transcript_schema(folder)
    roles, contents, errors_of_tools = Counter[str](), Counter[str](), Counter[str]()
    transcripts = calls = wrong = tokens = 0
    everything = import_module("inspect_scout._transcript.types").TranscriptContent(messages="all", events="all")
    async with scout.transcripts_from(folder).reader() as reader:
        async for info in reader.index():
            transcript = await reader.read(info, everything)
            transcripts += 1
            tokens += info.total_tokens or 0
            wrong += len(transcript.messages) != info.message_count
            for message in transcript.messages:
                roles[message.role] += 1
                calls += len(getattr(message, "tool_calls", None) or [])
                contents.update(["text"] if isinstance(message.content, str) else [c.type for c in message.content])
                error = getattr(message, "error", None)
                errors_of_tools.update([error.type] if error else [])
    print(f"{transcripts} transcripts, {dict(roles)}, {calls} calls, {tokens} tokens")
    print(f"contents {dict(contents)}, errors of tools {dict(errors_of_tools)}")
    print(f"{len(errors)} errors of columns, {wrong} transcripts with another number of messages")
    for error in errors:
        print(f"  {error.message}")
    sys.exit(bool(errors or wrong))


if __name__ == "__main__":
    asyncio.run(read(sys.argv[1]))
