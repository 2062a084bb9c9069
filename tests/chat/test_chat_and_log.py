"""A chat that is kept in the store, and the log of the agent that answers it, are one session: the log's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.agent_chats import claude
from support.chat_script import drain
from support.fake_agent import FakeAgent, printed
from support.fake_claude import records
from turnlog.chat import Chat, NativeKeeper, load_ui_messages
from turnlog.chat.runtimes import AgentRuntime
from turnlog.errors import NotFoundError
from turnlog.model import Fate
from turnlog.store import open_store
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

SESSION = "11111111-1111-4111-8111-111111111111"
LOG = f"claude-code:{SESSION}"
CHAT = "turnlog:chat"


@pytest.fixture
def path(home: Path) -> Path:
    return home / "turnlog.db"


def log_of(home: Path) -> Path:
    return home / ".claude" / "projects" / "-work" / f"{SESSION}.jsonl"


def answering(agent: FakeAgent, log: Path, prompt: str, answer: str, *, cut: int | None = None) -> None:
    """Let the agent print an answer, and write the log of it, perhaps not all of that."""
    lines: list[dict[str, Any]] = records(SESSION, prompt, answer)
    shown = [{key: line[key] for key in ("type", "uuid", "message", "timestamp")} for line in lines[1:]]
    init = {"type": "system", "subtype": "init", "cwd": "/work", "model": "claude-opus-4-5"}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": answer}
    told = [json.dumps({**line, "session_id": SESSION}) for line in (init, *shown, result)]
    log.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(line)}\n" for line in lines[:cut])
    agent.record("> ", *printed(told[:-1]), f"! open({str(log)!r}, 'a').write({text!r})", *printed(told[-1:]), "= 0")


def prompt(id: str, text: str) -> dict[str, Any]:
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


def post(id: str, text: str) -> bytes:
    return json.dumps({"id": "chat", "message": prompt(id, text)}).encode()


def talk(runtime: AgentRuntime, path: Path, *bodies: Callable[[], bytes]) -> list[str]:
    """Ask one thing after another; the ids of the messages that a page loads afterwards."""

    async def run() -> list[str]:
        keeper = NativeKeeper(path)
        chat = Chat(runtime, keeper)
        for body in bodies:
            await drain(await chat.post(body()))
        await chat.close()
        await runtime.close()
        keeper.close()
        return [message.id for message in await reloaded(path)]

    return asyncio.run(run())


async def reloaded(path: Path) -> list[Any]:
    keeper = NativeKeeper(path)
    try:
        return await keeper.load("chat")
    finally:
        keeper.close()


def listed(path: Path) -> list[str]:
    with open_store(path) as store:
        return [session.id for session in store.sessions().items]


def found(path: Path, words: str) -> set[str]:
    with Indexer(path, search_path(path)) as indexer:
        indexer.catch_up()
    with Searcher(path, search_path(path)) as searcher:
        return {place.session_id for hit in searcher.search(words).hits for place in hit.places}


def asking(agent: FakeAgent, log: Path, id: str, text: str, **more: Any) -> Callable[[], bytes]:
    """A request, with the agent made ready for it at that moment."""

    def body() -> bytes:
        answering(agent, log, text, f"You said: {text}", **more)
        return post(id, text)

    return body


def test_a_chat_and_its_agents_log_are_one_session(agent: FakeAgent, home: Path, path: Path) -> None:
    """R-S35: what a run logged is its session. A page that loads the chat afterwards has the ids that it knew."""
    asked = [asking(agent, log_of(home), *words) for words in (("q1", "find the heron"), ("q2", "and the wren"))]
    ids = talk(claude(agent, store_path=path), path, *asked)
    assert (ids[0], ids[2], len(ids)) == ("q1", "q2", 4)
    assert listed(path) == [LOG]
    assert found(path, "heron") == found(path, "wren") == {LOG}
    with open_store(path) as store:
        assert store.session(LOG).counts.prompts == 2
        assert store.session(CHAT).counts.messages == 0
        assert store.usage().totals.calls == store.session(LOG).usage.calls == 4
        page = load_ui_messages(store, CHAT)
        assert [message.role for message in page.messages] == ["user", "assistant"] * 2
        metadata: Any = page.messages[1].metadata
        assert metadata["agentSession"] == LOG
        placed = store.messages(CHAT)
        assert {each.membership.fate for each in placed} == {Fate.ACTIVE}
        assert store.message(placed[0].message.id) == placed[0].message


def test_a_chat_whose_log_counts_still_has_a_page_that_leads_there(agent: FakeAgent, home: Path, path: Path) -> None:
    asked = [asking(agent, log_of(home), *words) for words in (("q1", "find the heron"), ("q2", "and the wren"))]
    talk(claude(agent, store_path=path), path, *asked)
    with open_store(path) as store:
        whole, last = store.window(CHAT), store.window(CHAT, before=1 << 53, limit=1)
        shown = [message["id"] for message in json.loads(whole.to_json())["items"]]
        assert shown == [placed.message.id for placed in store.messages(CHAT)]
        assert shown != []
        assert [entry.text for entry in store.outline(CHAT)] == ["find the heron", "and the wren"]
        assert {entry.message_id for entry in store.outline(CHAT)} < set(shown)
        assert (last.has_before, last.has_after, len(last.frames)) == (True, False, 1)
        assert [session.id for session in store.children(CHAT)] == [LOG]
        assert store.children(LOG) == []


def test_a_log_that_is_read_later_takes_the_chats_place(agent: FakeAgent, home: Path, path: Path) -> None:
    ids = talk(claude(agent), path, asking(agent, log_of(home), "q1", "find the heron"))
    assert listed(path) == [CHAT]
    with open_store(path) as store:
        assert store.usage().totals.calls == 2
    sync(path)
    assert listed(path) == [LOG]
    assert found(path, "heron") == {LOG}
    with open_store(path) as store:
        assert store.usage().totals.calls == 2
    assert talk(claude(agent), path) == ids


def test_a_chat_that_is_saved_behind_its_log_takes_no_place(agent: FakeAgent, home: Path, path: Path) -> None:
    ids = talk(claude(agent), path, asking(agent, log_of(home), "q1", "find the heron"))
    messages, later = asyncio.run(reloaded(path)), home / "later.db"
    sync(later)

    async def save() -> None:
        keeper = NativeKeeper(later)
        await keeper.save("chat", messages)
        keeper.close()

    asyncio.run(save())
    assert listed(later) == [LOG]
    assert found(later, "heron") == {LOG}
    assert [message.id for message in asyncio.run(reloaded(later))] == ids


def test_what_the_log_does_not_have_yet_is_the_chats(agent: FakeAgent, home: Path, path: Path) -> None:
    talk(claude(agent), path, asking(agent, log_of(home), "q1", "find the heron", cut=3))
    sync(path)
    assert set(listed(path)) == {CHAT, LOG}
    assert found(path, "said") == {CHAT}
    whole = log_of(home).read_text().splitlines()[-1]
    answer = {"role": "assistant", "id": "msg_late", "content": [{"type": "text", "text": "You said: find the heron"}]}
    late = json.loads(whole) | {"type": "assistant", "uuid": "late", "message": answer}
    with log_of(home).open("a") as file:
        file.write(json.dumps(late) + "\n")
    sync(path)
    assert listed(path) == [LOG]
    assert found(path, "said") == {LOG}


def test_an_answer_made_anew_leaves_the_old_one_taken_back(agent: FakeAgent, home: Path, path: Path) -> None:
    ids = list[str]()

    def again() -> bytes:
        answering(agent, log_of(home), "find the heron", "A new answer")
        return json.dumps({"id": "chat", "trigger": "regenerate-message", "messages": [prompt("q1", "find")]}).encode()

    ids += talk(claude(agent, store_path=path), path, asking(agent, log_of(home), "q1", "find"), again)
    assert len(ids) == 2
    assert listed(path) == [LOG]
    with open_store(path) as store:
        fates = [each.membership.fate for each in store.messages(CHAT)]
    assert fates == [Fate.ACTIVE, Fate.RETRACTED, Fate.RETRACTED, Fate.ACTIVE, Fate.ACTIVE]


def test_a_rebuild_changes_nothing(agent: FakeAgent, home: Path, path: Path) -> None:
    ids = talk(claude(agent, store_path=path), path, asking(agent, log_of(home), "q1", "find the heron"))
    rebuild(path)
    assert listed(path) == [LOG]
    assert found(path, "heron") == {LOG}
    assert talk(claude(agent, store_path=path), path) == ids


def test_forgetting_the_session_forgets_the_chats_words_too(agent: FakeAgent, home: Path, path: Path) -> None:
    talk(claude(agent, store_path=path), path, asking(agent, log_of(home), "q1", "find the heron"))
    assert set(forget_for_good(path, LOG).session_ids) == {LOG, CHAT}
    assert b"heron" not in path.read_bytes() + search_path(path).read_bytes()
    assert listed(path) == []
    with open_store(path) as store, pytest.raises(NotFoundError):
        store.session(CHAT)
