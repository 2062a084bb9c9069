"""Whether the real agents go on with sessions that turnlog wrote for them.

Each session is handed to an agent, which resumes it against the scripted model: it answers, runs a command, and is
resumed once more. Its first request must have, in order, every text, call, input and result of the session that the
report does not list as lost. What is wanted is taken from the stored session and not from what turnlog wrote.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from clis import Cli
from model_server import ModelServer, offers_tools
from script import Answer, Call, Tokens

from turnlog.errors import HandoffError
from turnlog.handoff import HandoffPlan, plan
from turnlog.model import FilePart, Message, TextPart, ToolCallPart
from turnlog.providers.context import PlacedHistory, select_context
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.sync.syncer import sync

PROMPTS = ("Go on with it, please", "And once more")
_TOKENS = Tokens(input=100, cached=0, output=10, reasoning=0)


class Item(NamedTuple):
    """Something of a session, or of a request."""

    kind: str
    """`text`, `call`, `input`, `result` or `file`"""
    text: str
    message_id: str = ""
    call_id: str = ""


@dataclass
class Verdict:
    """How one session fared."""

    carried: int = 0
    lost: int = 0
    """Items that the report names."""
    findings: list[str] = field(default_factory=list[str])
    models: set[str] = field(default_factory=set[str])
    """The models that the agent asked."""
    seconds: float = 0


def hand_over(
    cli: Cli,
    store_path: Path,
    session_id: str,
    home: Path,
    launch: Callable[[str, list[str]], None],
    keep: Callable[[HandoffPlan, list[tuple[str, str]]], None] | None = None,
) -> Verdict:
    """Let the agent go on with a session.

    `launch` starts it with the address of the model and its arguments. `keep` gets what the first request had of the
    session.
    """
    verdict = Verdict()
    with open_store(store_path) as store:
        try:
            planned = plan(store, session_id, cli.name, folder=home / "work", home=home / cli.home)
        except HandoffError as error:
            verdict.lost = 1
            return Verdict(lost=1, findings=[] if "no messages" in str(error) else [str(error)])
        wanted = [
            item._replace(text=cli.renames.get(item.text, item.text)) if item.kind == "call" else item
            for item in items_of_session(store, session_id)
        ]
    planned.write()
    command = Call(id="call_handed", tool=cli.tool, input={cli.argument: "echo handed", **cli.extra}, output="handed")
    answers = [
        Answer(number=91, text="I go on.", calls=(command,), tokens=_TOKENS),
        Answer(number=92, text="Done with that.", tokens=_TOKENS),
        Answer(number=93, text="Once more, then.", tokens=_TOKENS),
    ]
    bodies: list[dict[str, Any]] = []
    with ModelServer(answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            for prompt in PROMPTS:
                words = [planned.new.external_id if word == "{SESSION}" else word for word in cli.resume]
                launch(server.url, [prompt if word == "{PROMPT}" else word for word in words])
        finally:
            server.shutdown()
        asked = [pair for pair in zip(server.bodies, server.models, strict=True) if offers_tools(pair[0])]
        bodies = [body for body, _ in asked]
        verdict.models = {model for _, model in asked}
    if len(bodies) != len(answers):
        verdict.findings.append(f"asked the model {len(bodies)} times, not {len(answers)}")
    if bodies:
        compare(wanted, items_of_request(bodies[0]), planned, verdict)
    if len(bodies) == len(answers):
        later = [*wanted, Item("text", PROMPTS[0]), Item("text", "I go on."), Item("result", "handed")]
        compare([*later, Item("text", PROMPTS[1])], items_of_request(bodies[-1]), planned, Verdict(), verdict.findings)
    check_reading(store_path, planned, home / cli.home, verdict)
    if keep is not None and bodies:
        handed = [item for message in planned.conversation.messages for item in _items_of_message(message)]
        found = items_of_request(bodies[0])
        keep(planned, [(item.kind, item.text) for item in found if any(_matches(each, item) for each in handed)])
    return verdict


def items_of_session(store: Store, session_id: str) -> Iterator[Item]:
    """What the model of the session was told and said, in order."""
    placed = store.messages(session_id)
    history = PlacedHistory(
        [each.message for each in placed], [each.membership for each in placed], store.events(session_id)
    )
    for message in select_context(history).messages:
        if message.role in ("user", "assistant"):
            yield from _items_of_message(message)


def _items_of_message(message: Message) -> Iterator[Item]:
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    for part in message.parts:
        if isinstance(part, TextPart) and part.text.strip():
            yield Item("text", part.text, message.id)
        elif isinstance(part, FilePart) and (size := _size_of(part)):
            yield Item("file", str(size), message.id)
        elif isinstance(part, ToolCallPart):
            yield Item("call", part.tool_name, message.id, part.tool_call_id)
            given = part.input_text if part.input_text is not None else bytes(part.input or b"{}").decode()
            yield Item("input", _plain_json(given), message.id, part.tool_call_id)
    for call in calls:
        for result in call.results[-1:]:
            for part in result.content:
                if isinstance(part, TextPart) and part.text.strip():
                    yield Item("result", part.text, message.id, call.tool_call_id)
                elif isinstance(part, FilePart) and (size := _size_of(part)):
                    yield Item("file", str(size), message.id, call.tool_call_id)


def _size_of(part: FilePart) -> int:
    """Bytes of a file that the session has; 0 of one that it only names."""
    return part.blob.size if part.blob is not None else len(part.data or b"")


def _plain_json(text: str) -> str:
    """JSON in one spelling; another text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("_raw"), str):
        return value["_raw"]
    return json.dumps(value, sort_keys=True)


def compare(
    wanted: list[Item], found: list[Item], planned: HandoffPlan, verdict: Verdict, findings: list[str] | None = None
) -> None:
    """Look for each wanted item after the one before it."""
    findings = verdict.findings if findings is None else findings
    # Reasoning is no item: that it is left out excuses nothing else.
    losses = [loss for loss in planned.losses if not loss.kind.startswith("reasoning")]
    reported = {(loss.message_id, loss.tool_call_id or "") for loss in losses}
    cursor = 0
    for item in wanted:
        at = next((index for index in range(cursor, len(found)) if _matches(item, found[index])), None)
        is_reported = (item.message_id, item.call_id) in reported or (item.message_id, "") in reported
        if at is not None:
            # Calls of one answer, and results of several, may come in another order. What is reported may stand
            # elsewhere, or not be there at all and only read like something later.
            cursor = at if item.kind in ("text", "input") and not is_reported else cursor
            verdict.carried += 1
        elif is_reported:
            verdict.lost += 1
        else:
            there = any(_matches(item, each) for each in found)
            findings.append(f"{'out of order' if there else 'missing'}: {item.kind} {item.text[:100]!r}")


def _matches(wanted: Item, found: Item) -> bool:
    if wanted.kind != found.kind:
        return False
    if wanted.kind in ("text", "result"):
        return wanted.text.strip() in found.text
    return wanted.text == found.text


# -- the items of a request, by API


def items_of_request(body: dict[str, Any]) -> list[Item]:
    if "contents" in body:
        return list(_gemini(body))
    return list(_responses(body) if "input" in body else _messages(body))


def _messages(body: dict[str, Any]) -> Iterator[Item]:
    """Anthropic Messages, and OpenAI chat."""
    for message in body["messages"]:
        content = message.get("content") or []
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield from _block(message, block)
        for call in message.get("tool_calls") or []:
            yield Item("call", call["function"]["name"])
            yield Item("input", _plain_json(call["function"]["arguments"]))


def _block(message: dict[str, Any], block: dict[str, Any]) -> Iterator[Item]:
    kind = block.get("type")
    if kind == "text":
        yield Item("result" if message["role"] == "tool" else "text", block["text"])
    elif kind == "tool_use":
        yield Item("call", block["name"])
        yield Item("input", _plain_json(json.dumps(block["input"])))
    elif kind == "tool_result":
        yield from _result(block.get("content"))
    elif kind in ("image", "image_url"):
        source = block.get("source") or {"data": block["image_url"]["url"].partition(",")[2]}
        yield Item("file", _size(source.get("data", "")))


def _result(content: Any) -> Iterator[Item]:
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
        if "text" in part:
            yield Item("result", part["text"])
        elif "source" in part:
            yield Item("file", _size(part["source"].get("data", "")))
        elif "image_url" in part:
            yield Item("file", _size(part["image_url"].partition(",")[2]))


def _responses(body: dict[str, Any]) -> Iterator[Item]:
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "message":
            for part in item["content"]:
                if "text" in part:
                    yield Item("text", part["text"])
                elif "image_url" in part:
                    yield Item("file", _size(part["image_url"].partition(",")[2]))
        elif kind in ("function_call", "custom_tool_call"):
            yield Item("call", item["name"])
            yield Item("input", _plain_json(item.get("arguments") or item.get("input") or "{}"))
        elif kind.endswith("_output"):
            yield from _result(item.get("output"))


def _gemini(body: dict[str, Any]) -> Iterator[Item]:
    for content in body["contents"]:
        for part in content.get("parts", []):
            if "functionCall" in part:
                yield Item("call", part["functionCall"]["name"])
                yield Item("input", _plain_json(json.dumps(part["functionCall"].get("args") or {})))
            elif "functionResponse" in part:
                response = part["functionResponse"].get("response") or {}
                yield Item("result", "\n".join(str(value) for value in response.values()))
                for nested in part["functionResponse"].get("parts", []):
                    yield Item("file", _size(nested["inlineData"]["data"]))
            elif "inlineData" in part:
                yield Item("file", _size(part["inlineData"]["data"]))
            elif "text" in part:
                yield Item("text", part["text"])


def _size(encoded: str) -> str:
    return str(len(encoded.rstrip("=")) * 3 // 4)


# -- what turnlog reads afterwards


def check_reading(store_path: Path, planned: HandoffPlan, home: Path, verdict: Verdict) -> None:
    """The session is one continuation of its origin, has the carried history and what came after it, and no costs."""
    sync(store_path, roots=[home])
    with open_store(store_path) as store:
        new = store.session(planned.session_id)
        links = [(each.kind, each.parent_session_id) for each in new.relationships]
        if links != [("continuation", planned.session.id)]:
            verdict.findings.append(f"relationships {links}")
        placed = store.messages(new.id)
        carried = [_words(each.message) for each in placed if not each.membership.is_billed]
        handed = [_words(message) for message in planned.conversation.messages]
        if carried != handed:
            verdict.findings.append(f"carried history differs: {len(carried)} messages, {len(handed)} were handed over")
        own = [each.message for each in placed if each.membership.is_billed and each.message.role != "developer"]
        told = [word for message in own for word in _words(message)]
        for word in (*PROMPTS, "I go on.", "Done with that.", "Once more, then."):
            if not any(word in each for each in told):
                verdict.findings.append(f"not read: {word!r} in {told}")
        if new.usage.calls != 3:
            verdict.findings.append(f"{new.usage.calls} model calls are counted, and not 3")


def _words(message: Message) -> list[str]:
    """What a message says, in plain words."""
    words: list[str] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            words.append(part.text)
        elif isinstance(part, ToolCallPart):
            given = part.input_text if part.input_text is not None else bytes(part.input or b"{}").decode()
            words += [part.tool_name, _plain_json(given), *(result.status for result in part.results)]
            words += [result.output_text for result in part.results]
        elif isinstance(part, FilePart):
            words.append(f"{part.media_type} {len(part.data or b'')}")
    return words
