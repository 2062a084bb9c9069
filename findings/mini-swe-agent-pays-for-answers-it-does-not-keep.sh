#!/bin/bash
# A good guess says: the messages of a trajectory hold every answer of the model, and their costs add up to instance_cost.
# What happens: an answer without a tool call is counted and paid (api_calls, instance_cost), and is not kept as a message:
#   in its place stands a user message that says what was wrong, with the whole response inside its extra. Whoever sums or
#   reads assistant messages misses it. The last message of a run has the role "exit".
# Version: PyPI mini-swe-agent 2.4.6 (trajectory_format mini-swe-agent-1.1) against a scripted model on 127.0.0.1.
# Why it matters: tokens and costs of a run must be taken from the user messages, too.
set -eu; D=$(mktemp -d); trap 'rm -rf "$D"' EXIT; cd "$D"
python3 -m venv v; v/bin/pip install -q --disable-pip-version-check mini-swe-agent==2.4.6
cat > check.py <<'EOF'
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

ANSWERS = ["I only talk.", None]


class Model(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        text = ANSWERS.pop(0)
        message = {"role": "assistant", "content": text}
        if text is None:
            command = json.dumps({"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": command}}]
        body = json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                           "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = HTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ.update(MSWEA_CONFIGURED="true", MSWEA_SILENT_STARTUP="1", LITELLM_LOCAL_MODEL_COST_MAP="True", OPENAI_API_KEY="x", OPENAI_API_BASE=f"http://127.0.0.1:{server.server_port}/v1")
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

agent = DefaultAgent(LitellmModel(model_name="openai/gpt-4o"), LocalEnvironment(), system_template="s", instance_template="{{task}}")
agent.run("do it")
run = agent.save(None)
roles = [m["role"] for m in run["messages"]]
answers = [m for m in run["messages"] if m["role"] == "assistant"]
paid = sum(m["extra"]["cost"] for m in answers)
stats = run["info"]["model_stats"]
print(roles, "calls:", stats["api_calls"], "cost:", stats["instance_cost"], "cost of the answers:", paid)
wrong = run["messages"][2]
print("in its place:", wrong["role"], sorted(wrong["extra"]))
assert stats["api_calls"] == 2 and len(answers) == 1
assert abs(stats["instance_cost"] - 2 * paid) < 1e-9 and paid > 0
assert "I only talk." not in [m.get("content") for m in run["messages"]]
assert wrong["role"] == "user" and "I only talk." in json.dumps(wrong["extra"])
assert roles[-1] == "exit"
EOF
HOME="$D" v/bin/python check.py
