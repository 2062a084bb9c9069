"""What Gemini CLI sent when it went on with a session, beside what is built from its log for the same model.

R-K22, R-K26. As with Claude Code (`test_claude_requests`): each request must be how ours begins, without what the
harness put in.
Every difference that is undone here is listed in docs/reference/providers.md.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.sdk_types import check_with_sdk
from turnlog.logs import read_session
from turnlog.providers import provider
from turnlog.providers.base import RequestOptions
from turnlog.providers.context import select_context

DATA = Path(__file__).parent.parent / "data"
REQUESTS = {path.stem: path for path in sorted((DATA / "gemini_requests").glob("*.json"))}
MODEL = "gemini-2.5-pro"
HARNESS = ("<session_context>", "<hook_context>", "(continued)", "Tool result image:", "Got it. Thanks", "/compress")
ATTACHED = re.compile("\n<session_context>|\n<hook_context>|\nGot it. Thanks for the add")

Part = dict[str, Any]


def normal(contents: list[Part]) -> list[Any]:
    """What a request says, one entry a part, without thoughts and what the harness put in.

    Gemini CLI sends every result twice when it resumes, and puts images of results before the next result.
    """
    before: list[Any] = []
    behind: list[Any] = []
    for content in contents:
        answers = "functionResponse" in content["parts"][0]
        if not answers:
            before, behind = [*before, *behind], []
        is_double = False
        for part in content["parts"]:
            entry = (content["role"], same_form(part))
            # A doubled result doubles its images too.
            is_double = entry in before if "functionResponse" in part else is_double and answers
            if part.get("text", "").startswith(HARNESS) or part.get("thought") or is_double:
                continue
            (behind if answers and "inlineData" in part else before).append(entry)
    return [*before, *behind]


def same_form(part: Part) -> Part:
    """Without ids and signatures, which neither the API nor an old model wants, and without attached reminders."""
    plain = {name: value for name, value in part.items() if name != "thoughtSignature"}
    for name in ("functionCall", "functionResponse"):
        if name in plain:
            plain[name] = {key: value for key, value in plain[name].items() if key != "id"}
    if "functionResponse" in plain:
        (kind, text), *_ = plain["functionResponse"]["response"].items()
        plain["functionResponse"]["response"] = {kind: ATTACHED.split(text)[0]}
    return plain


@pytest.mark.parametrize("scenario", REQUESTS)
def test_it_begins_with_what_gemini_cli_sent(scenario: str) -> None:
    sent = json.loads(REQUESTS[scenario].read_text())
    expected = normal(sent["contents"])
    assert expected
    made: list[list[Any]] = []
    for log in sorted((DATA / "gemini_cli/scenarios" / scenario).glob("tmp/*/chats/*.json*")):
        context = select_context(read_session(log))
        conversion = provider("gemini").to_request(context.messages, RequestOptions(model=MODEL))
        check_with_sdk("gemini", conversion.body)
        made.append(normal(conversion.body["contents"])[: len(expected)])
    assert expected in made
