#!/bin/bash
# A good guess says: a session whose log has a title record is listed by that title.
# What happens: only the first and the last 64 KiB of a file are looked at. Between two long records (images, large
#   results), the title is gone and the first prompt takes its place; the next title record brings it back. A title that the
#   agent made itself is reported as custom_title, as if the user had set it.
# Version: PyPI claude-agent-sdk 0.2.189, records as Claude Code 2.1.332 writes them.
# Why it matters: titles change back and forth while a session goes on.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check claude-agent-sdk==0.2.189
cat > check.py <<'EOF'

import json
import os
from pathlib import Path

os.environ["CLAUDE_CONFIG_DIR"] = os.path.realpath(".claude")
import claude_agent_sdk as sdk

CWD, SESSION = os.path.realpath("project"), "11111111-1111-4111-8111-111111111111"
os.mkdir(CWD)
LOG = Path(os.environ["CLAUDE_CONFIG_DIR"], "projects", "".join(c if c.isalnum() else "-" for c in CWD), SESSION + ".jsonl")
LOG.parent.mkdir(parents=True)


class Log:
    def __init__(self):
        self.records = []

    def add(self, kind, text=None, **fields):
        n = len(self.records) + 1
        last = self.records[-1]["uuid"] if self.records else None
        record = {"parentUuid": last, "isSidechain": False, "userType": "external", "cwd": CWD, "sessionId": SESSION, "version": "2.1.332",
                  "type": kind, "uuid": f"{n:08x}-0000-4000-8000-000000000001", "timestamp": f"2026-11-01T10:00:{n:02d}.000Z", **fields}
        if kind == "user":
            record["message"] = {"role": "user", "content": text}
        elif kind == "assistant":
            record["message"] = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": "claude-opus-4-5", "stop_reason": "end_turn", "stop_sequence": None,
                                 "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 1, "output_tokens": 1}}
        self.records.append(record)
        return record["uuid"]

    def save(self, *more):
        LOG.write_text("".join(json.dumps(r) + "\n" for r in [*self.records, *more]))


log = Log()
log.add("user", "Why is the test slow?")
log.add("assistant", "It waits.")
title = {"type": "ai-title", "aiTitle": "Slow test", "sessionId": SESSION}


def listed():
    info = sdk.list_sessions(directory=CWD)[0]
    return info.summary, info.custom_title


log.save(title)
short = listed()
def long(n):
    return {**log.records[0], "uuid": f"{n:08x}-0000-4000-8000-000000000001", "message": {"role": "user", "content": "x" * 70_000}}


LOG.write_text("".join(json.dumps(r) + "\n" for r in [*log.records, long(10), title, long(11)]))
middle = listed()
print("short log:", short, "| long log:", middle)
assert short == ("Slow test", "Slow test")
assert middle == ("Why is the test slow?", None), middle
EOF
HOME="$D" v/bin/python check.py
