#!/bin/bash
# A good guess says: a client of the Agent Client Protocol gets what a newer agent sends, as it is, or the connection fails.
# What happens: three rules. An update of an unknown kind, and a known one with a content block of an unknown type, are
#   dropped whole: one line of the error log, the turn goes on. An unknown kind or status of a tool call becomes None: the
#   call is there, what it said is not. Unknown fields vanish without any sign; only _meta is kept.
# Version: PyPI agent-client-protocol 0.12.1.
# Why it matters: a recorder built on the typed client loses what is new. It must keep the frames themselves.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check agent-client-protocol==0.12.1
cat > check.py <<'EOF'
import asyncio
import json
import logging
import sys

import acp

AGENT = r"""
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize": send(id=request["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
    elif request["method"] == "session/new": send(id=request["id"], result={"sessionId": "s"})
    elif request["method"] == "session/prompt":
        text = {"type": "text", "text": "one"}
        for update in (
            {"sessionUpdate": "agent_message_chunk", "content": text, "newField": 5, "_meta": {"kept": 1}},
            {"sessionUpdate": "new_kind_of_update", "content": text},
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "video", "data": "x"}},
            {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "kind": "new_kind", "status": "cancelled"},
        ): send(method="session/update", params={"sessionId": "s", "update": update})
        send(id=request["id"], result={"stopReason": "end_turn"})
"""
open("agent.py", "w").write(AGENT)
logging.disable(logging.CRITICAL)
seen = []


class Client(acp.Client):
    async def session_update(self, session_id, update, **kwargs):
        seen.append(update)


async def main():
    async with acp.spawn_agent_process(Client(), sys.executable, "agent.py") as (connection, _):
        await connection.initialize(protocol_version=1)
        session = await connection.new_session(cwd="/tmp", mcp_servers=[])
        response = await connection.prompt(session_id=session.session_id, prompt=[acp.text_block("hi")])
        assert response.stop_reason == "end_turn"


asyncio.run(main())
for update in seen:
    print(json.dumps(update.model_dump(mode="json", by_alias=True, exclude_none=True)))
assert [type(u).__name__ for u in seen] == ["AgentMessageChunk", "ToolCallStart"]
assert "newField" not in json.dumps(seen[0].model_dump(by_alias=True)) and seen[0].field_meta == {"kept": 1}
assert seen[1].kind is None and seen[1].status is None
EOF
HOME="$D" v/bin/python check.py
