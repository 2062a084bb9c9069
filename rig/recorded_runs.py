"""What happened in a recorded run: the answers that a scripted model gave, and what the agent sent back to it.

A recording is a folder with `steps.json` (the commands), `scenario/<step>.scenario.json` (the script), `home/` or
`work/` (the logs), and `requests/<step>/` (what the model was sent, with the queue and the number of its answer).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FAILING = "exit 3)"
"""How the commands of the scripts end that are to fail, with a bracket behind them or none."""
_NO_MODEL = ("get", "other")
"""Where requests are noted that asked no model."""
_SIDE = "side"
"""The requests without tools, for titles and summaries: their answers are in no conversation."""
_DEFAULT = {"in": 100, "cached": 0, "cache_write": 0, "out": 20}
"""What an answer used whose script says nothing."""


@dataclass(frozen=True, kw_only=True)
class TrueCall:
    """A call that the model made, and what the agent sent back; None where it never asked the model again."""

    tool: str
    input: dict[str, Any]
    output: str | None
    fails: bool


@dataclass(frozen=True, kw_only=True)
class Truth:
    """Of a whole recording; subagents and forks included, what two sessions share once."""

    prompts: tuple[str, ...]
    words: tuple[str, ...]
    """Texts and reasoning of the answers, in order."""
    calls: tuple[TrueCall, ...]
    tokens: tuple[int, int, int]
    """Input without cache, cache, output with reasoning."""
    answers: int
    """Without those that are in no conversation."""


def recordings(corpus: Path) -> list[Path]:
    """The recordings below a folder, by name."""
    return sorted(path.parent for path in corpus.glob("*/*/steps.json"))


def logs_of(recording: Path) -> Path:
    """The folder that was HOME, or the only one of which something was kept."""
    home = recording / "home"
    return home if home.is_dir() else recording / "work"


def read_truth(recording: Path) -> Truth:
    prompts: list[str] = []
    words: list[str] = []
    calls: list[TrueCall] = []
    tokens = [0, 0, 0]
    count = 0
    for step in json.loads((recording / "steps.json").read_bytes()):
        requests = _requests(recording, step["name"])
        outputs = _outputs(requests)
        sent = json.dumps([request["body"] for request in requests], ensure_ascii=False)
        prompts += [prompt for prompt in _said(step) if json.dumps(prompt, ensure_ascii=False)[1:-1] in sent]
        for queue, turn in _answers(recording, step["name"], requests):
            count += queue != _SIDE
            usage = _DEFAULT | turn.get("usage", {})
            for place, used in enumerate((usage["in"], usage["cached"] + usage["cache_write"], usage["out"])):
                tokens[place] += used
            for block in turn.get("blocks", []) if queue != _SIDE else ():
                if block["type"] == "tool":
                    calls.append(_call(block, outputs))
                else:
                    words.append(block["text"].strip())
    return Truth(
        prompts=tuple(prompts), words=tuple(words), calls=tuple(calls), answers=count,
        tokens=(tokens[0], tokens[1], tokens[2]),
    )  # fmt: skip


def _requests(recording: Path, step: str) -> list[dict[str, Any]]:
    found = [json.loads(path.read_bytes()) for path in sorted((recording / "requests" / step).glob("*.json"))]
    return [request for request in found if request["queue"] not in _NO_MODEL]


def _said(step: dict[str, Any]) -> Iterator[str]:
    """What may be a prompt among the words of a command."""
    words = step.get("argv") or re.findall(r"'([^']+)'", step.get("sh", ""))
    return (word for word in words if " " in word)


def _answers(recording: Path, step: str, requests: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The queue and the scripted answer of each request; nothing where the script had none."""
    script_file = recording / "scenario" / f"{step}.scenario.json"
    script = json.loads(script_file.read_bytes()) if script_file.exists() else {}
    queues = {queue["name"]: queue for queue in script.get("queues", [])}
    for request in requests:
        name, place = request["queue"], request["turn"]
        turns = queues[name]["turns"] if name in queues else script.get(name, [])
        if place >= len(turns) and turns and (name == _SIDE or queues.get(name, {}).get("repeat")):
            place = len(turns) - 1
        yield name, turns[place] if place < len(turns) else {}


def _call(block: dict[str, Any], outputs: dict[str, str]) -> TrueCall:
    key = json.dumps([block["name"], block["input"]], sort_keys=True)
    ids = [name for name in outputs if block.get("id") and name.endswith(block["id"])]
    output = outputs[ids[0]] if ids else outputs.get(key)
    fails = f"{block['input']})".find(_FAILING) >= 0 or "exit 3'" in str(block["input"])
    return TrueCall(tool=block["name"], input=block["input"], output=output, fails=fails)


def _outputs(requests: list[dict[str, Any]]) -> dict[str, str]:
    """What the agent sent for each call, by the call's id, and by its tool and input."""
    made: dict[str, str] = {}
    outputs: dict[str, str] = {}
    for request in requests:
        for call_id, key, output in _exchanged(request["body"]):
            if key:
                made[call_id] = key
            if output is not None:
                outputs.setdefault(call_id, output)
                outputs.setdefault(made.get(call_id, call_id), output)
    return outputs


def _exchanged(body: dict[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """The id, and tool and input of each call, or the output of one, in requests of three protocols."""
    for item in _listed(body.get("messages")) + _listed(body.get("input")):
        if item.get("type") == "function_call":
            yield item["call_id"], _key(item["name"], item["arguments"]), None
        elif item.get("type") == "function_call_output":
            yield item["call_id"], "", _text(item["output"])
        elif item.get("role") == "tool":
            yield item["tool_call_id"], "", _text(item["content"])
        for call in item.get("tool_calls") or []:
            yield call["id"], _key(call["function"]["name"], call["function"]["arguments"]), None
        for block in _listed(item.get("content")):
            if block.get("type") == "tool_use":
                yield block["id"], _key(block["name"], block["input"]), None
            elif block.get("type") == "tool_result":
                yield block["tool_use_id"], "", _text(block.get("content"))


def _listed(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _key(tool: str, arguments: Any) -> str:
    value = json.loads(arguments) if isinstance(arguments, str) else arguments
    return json.dumps([tool, value], sort_keys=True)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(block.get("text", "") for block in _listed(value))
