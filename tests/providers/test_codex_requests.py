"""What Codex sent when it went on with a session, beside what is built from its log for the same model (R-K22, R-K27).

As with Claude Code (`test_claude_requests`): each request must be how ours begins, without what the harness put in.
Every difference that is undone here is listed in docs/reference/providers.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.sdk_types import check_with_sdk
from turnlog.logs import read_session
from turnlog.providers import provider
from turnlog.providers.base import Conversion, RequestOptions
from turnlog.providers.context import select_context

DATA = Path(__file__).parent.parent / "data"
REQUESTS = {path.stem: path for path in sorted((DATA / "codex_requests").glob("*.json"))}
CUSTOM_TOOLS = [{"type": "custom", "name": name, "format": {"type": "text"}} for name in ("apply_patch", "exec")]

HARNESS = ("<environment_context>", "<turn_aborted>", "<subagent_notification>", "Message Type: ")
UNCOMPARED = ("id", "status", "annotations", "logprobs", "detail", "content", "execution")

Item = dict[str, Any]


def normal(items: list[Item]) -> list[Item]:
    """What a request says, one entry a text, call or result, without what the harness put in."""
    merged: list[Item] = []
    for item in items:
        if item.get("type", "message") == "message":
            content = item["content"]
            blocks = [{"text": content}] if isinstance(content, str) else content
            merged += [same_block(block, item) for block in blocks if not block.get("text", "").startswith(HARNESS)]
        elif item["type"] != "agent_message":
            merged.append(same_form(item))
    return joined(merged)


def joined(merged: list[Item]) -> list[Item]:
    """One result a call: Codex sends what a script reported on its way behind it, as a second one."""
    results: dict[str, Item] = {}
    kept: list[Item] = []
    for item in merged:
        first = results.get(item["call_id"]) if "output" in item else None
        if first is not None:
            first["output"][0]["text"] += "\n" + item["output"][0]["text"]
            continue
        if "output" in item:
            results[item["call_id"]] = item
        kept.append(item)
    return kept


def same_block(block: Item, item: Item) -> Item:
    plain = {name: value for name, value in block.items() if name not in (*UNCOMPARED, "type")}
    return {**plain, "role": item["role"], "phase": item.get("phase")}


def same_form(item: Item) -> Item:
    """One form for what Codex has words of its own for."""
    plain = {name: value for name, value in item.items() if name not in UNCOMPARED and value is not None}
    if item["type"] == "tool_search_call":
        plain |= {"type": "function_call", "name": "tool_search", "arguments": item["arguments"]}
    if item["type"] == "tool_search_output":
        plain = {"type": "function_call_output", "call_id": item["call_id"], "output": "(no output)"}
    namespace = plain.pop("namespace", "")
    if namespace.startswith("mcp__"):
        plain["name"] = f"{namespace}__{plain['name']}"
    if plain.get("name") == "tool_search" and isinstance(plain["arguments"], str):
        plain["arguments"] = json.loads(plain["arguments"])
    if "output" in plain:
        plain["output"] = same_output(plain["output"])
    return plain


def same_output(output: Any) -> list[Item]:
    """Texts as one, without the reminder that was attached to it."""
    blocks = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
    text = "\n".join([block["text"] for block in blocks if block["type"] == "input_text"])
    files = [{**block, "detail": None} for block in blocks if block["type"] != "input_text"]
    return [{"text": text.partition("\n<turn_aborted>")[0].partition("\n<subagent_notification>")[0]}, *files]


def converted(scenario: str, model: str) -> Conversion:
    """What is built from the scenario's log: of several, that of the session that was gone on with."""
    requests: list[Conversion] = []
    for log in sorted((DATA / "codex/scenarios" / scenario).glob("sessions/**/*.jsonl")):
        context = select_context(read_session(log))
        requests.append(
            provider("responses").to_request(
                context.messages, RequestOptions(model=model, tools=CUSTOM_TOOLS, aborted_result="aborted")
            )
        )
    return max(requests, key=lambda request: len(request.body["input"]))


@pytest.mark.parametrize("scenario", REQUESTS)
def test_it_begins_with_what_codex_sent(scenario: str) -> None:
    sent = json.loads(REQUESTS[scenario].read_text())
    conversion = converted(scenario, sent["model"])
    check_with_sdk("responses", conversion.body)
    expected = normal(sent["input"])
    assert len(expected) >= 4
    assert normal(conversion.body["input"])[: len(expected)] == expected
    # The tools that a search found are in the caller's own list of tools.
    assert {loss.kind for loss in conversion.losses} <= {"result-status", "data"}


def test_calls_of_code_are_not_the_models() -> None:
    """What a script called is in the script's own result."""
    conversion = converted("codemode", "gpt-6-sol")
    assert [repair.kind for repair in conversion.repairs].count("nested-call") == 4
