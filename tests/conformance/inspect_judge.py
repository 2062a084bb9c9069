"""Asks inspect_ai what it reads in logs: every sample with its messages, calls, results and tokens, as JSON.

    python3.12 -m venv /tmp/inspect && /tmp/inspect/bin/pip install inspect-ai
    /tmp/inspect/bin/python tests/conformance/inspect_judge.py LOG… > judged.json

The package has half a gigabyte of dependencies, so the tests have what it said of their logs
(`tests/data/inspect_logs/judged.json`).
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Print a list of samples."""
    log: Any = import_module("inspect_ai.log")
    found = [
        _sample(read, sample)
        for path in sys.argv[1:]
        for read in [log.read_eval_log(path, resolve_attachments=True)]
        for sample in read.samples
    ]
    json.dump(found, sys.stdout, indent=1)


def _sample(log: Any, sample: Any) -> dict[str, Any]:
    scores: dict[str, Any] = sample.scores or {}
    return {
        "eval_id": log.eval.eval_id,
        "task": log.eval.task,
        "id": sample.id,
        "epoch": sample.epoch,
        "error": None if sample.error is None else sample.error.message,
        "scores": {name: score.value for name, score in scores.items()},
        "usage": {model: usage.model_dump() for model, usage in sample.model_usage.items()},
        "messages": [_message(message) for message in sample.messages],
    }


def _message(message: Any) -> dict[str, Any]:
    contents: list[Any] = [] if isinstance(message.content, str) else message.content
    return {
        "role": message.role,
        "text": message.text,
        "reasoning": [content.reasoning for content in contents if content.type == "reasoning"],
        "images": [content.image for content in contents if content.type == "image"],
        "calls": [[call.id, call.function, call.arguments] for call in getattr(message, "tool_calls", None) or ()],
        "result_of": getattr(message, "tool_call_id", None),
        "error": None if getattr(message, "error", None) is None else message.error.message,
    }


if __name__ == "__main__":
    main()
