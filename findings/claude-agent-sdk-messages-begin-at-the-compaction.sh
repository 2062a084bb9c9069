#!/bin/bash
# A good guess says: get_session_messages returns the conversation that is in the log; a compaction hides it from the model
#   and not from the reader.
# What happens: it begins with the summary of the last compaction. All prompts and answers before it are in the file and are
#   not returned, and nothing says so, while list_sessions still names the first of them as first_prompt.
# Version: PyPI claude-agent-sdk 0.2.189, a log as Claude Code 2.1.332 writes it.
# Why it matters: a viewer, an export or a hand-over on top of this function loses the larger part of every long session.
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
log.add("user", "first question")
before = log.add("assistant", "first answer")
log.add("system", subtype="compact_boundary", content="Conversation compacted", parentUuid=None, logicalParentUuid=before, compactMetadata={"trigger": "auto", "preTokens": 100})
log.add("user", "Summary of what was before.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
log.add("user", "second question")
log.add("assistant", "second answer")
log.save()
messages = sdk.get_session_messages(SESSION, directory=CWD)
texts = [m.message["content"] if isinstance(m.message["content"], str) else m.message["content"][0]["text"] for m in messages]
first = sdk.list_sessions(directory=CWD)[0].first_prompt
print(texts, "| first prompt of the list:", first)
assert texts == ["Summary of what was before.", "second question", "second answer"]
assert first == "first question"
EOF
HOME="$D" v/bin/python check.py
