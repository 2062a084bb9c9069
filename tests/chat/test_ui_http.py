"""Stored sessions as UI messages over HTTP, in an application of one's own (R-H13, R-H14, R-H16)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI, HTTPException, Request
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from support.chat_script import drain, post
from turnlog.aisdk.streaming import Scope
from turnlog.chat import (
    Chat,
    NativeKeeper,
    RunFinish,
    RunRequest,
    RunStart,
    StreamEvent,
    TextDelta,
    UIMessagesApp,
    UIMessageStore,
    ui_messages_endpoint,
)
from turnlog.model import Message, Ownership, ReasoningPart, TextPart
from turnlog.store import open_store
from turnlog.store.base import Store

Serve = Callable[[UIMessageStore], ASGIApp]


async def _scope_owner(scope: Scope) -> Ownership:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return Ownership(user=headers.get(b"user", b"nobody").decode())


def plain(sessions: UIMessageStore) -> ASGIApp:
    return UIMessagesApp(sessions, owner=_scope_owner)


def mounted(sessions: UIMessageStore) -> ASGIApp:
    return Starlette(routes=[Mount("/api", UIMessagesApp(sessions, "/sessions", owner=_scope_owner))])


def fastapi(sessions: UIMessageStore) -> ASGIApp:
    async def owner(request: Request) -> Ownership:
        if request.headers.get("user") == "banned":
            raise HTTPException(401)
        return Ownership(user=request.headers.get("user", "nobody"))

    app = FastAPI()
    app.include_router(ui_messages_endpoint(sessions, owner=owner))
    return app


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "turnlog.db", create=True) as found:
        found.save_session("turnlog:talk", ownership=Ownership(user="ann"))
        for number in range(3):
            asked = Message(id=f"u{number}", role="user", parts=(TextPart(text=f"Question {number}"),))
            parts = (ReasoningPart(text="Hm"), TextPart(text=f"Answer {number}"))
            found.save_messages("turnlog:talk", [asked, Message(id=f"a{number}", role="assistant", parts=parts)])
        yield found


@pytest.fixture(params=[plain, mounted, fastapi])
def client(request: pytest.FixtureRequest, store: Store) -> Iterator[TestClient]:
    serve: Serve = request.param
    sessions = UIMessageStore(store, version=6, include_reasoning=False)
    with TestClient(serve(sessions), headers={"user": "ann"}) as found:
        yield found


PATH = "/api/sessions/turnlog:talk/ui-messages"


def test_a_session_is_read_page_by_page_or_at_once(client: TestClient) -> None:
    """R-H16."""
    first = client.get(PATH, params={"limit": 4}).json()
    assert [message["id"] for message in first["messages"]] == ["u0", "a0", "u1", "a1"]
    assert [part["type"] for part in first["messages"][1]["parts"]] == ["step-start", "text"]
    assert first["has_more"] is True
    rest = client.get(PATH, params={"cursor": first["next_cursor"]}).json()
    assert (rest["has_more"], rest["next_cursor"]) == (False, None)
    assert client.get(PATH, params={"offset": 4}).json()["messages"] == rest["messages"]
    whole = client.get(PATH, params={"all": "true", "limit": 1}).json()
    assert whole["messages"] == first["messages"] + rest["messages"]
    assert whole["has_more"] is False


def test_an_id_with_a_slash_is_read_as_it_is(client: TestClient) -> None:
    unknown = client.get("/api/sessions/turnlog:a%2Fb/ui-messages")
    assert (unknown.status_code, unknown.text) == (404, "there is no session turnlog:a/b")


def test_sessions_of_others_are_as_if_they_did_not_exist(client: TestClient) -> None:
    unknown = client.get(PATH.replace("talk", "none"))
    others = client.get(PATH, headers={"user": "bob"})
    assert (unknown.status_code, others.status_code) == (404, 404)
    assert unknown.text.replace("none", "talk") == others.text


def _unowned(sessions: UIMessageStore) -> ASGIApp:
    app = FastAPI()
    app.include_router(ui_messages_endpoint(sessions))
    return app


@pytest.mark.parametrize("make", [UIMessagesApp, _unowned])
def test_a_server_that_knows_nobody_shows_what_nobody_owns(make: Serve, store: Store) -> None:
    """As the chat backend does: somebody's session is no guess at its id away."""
    store.save_session("turnlog:free")
    store.save_messages("turnlog:free", [Message(id="f1", role="user", parts=(TextPart(text="Hello"),))])
    with TestClient(make(UIMessageStore(store))) as client:
        unknown, owned = client.get(PATH.replace("talk", "none")), client.get(PATH)
        assert (unknown.status_code, owned.status_code) == (404, 404)
        assert unknown.text.replace("none", "talk") == owned.text
        assert client.get(PATH + "?all=true").status_code == 404
        assert client.get(PATH.replace("talk", "free")).json()["messages"][0]["id"] == "f1"


def test_requests_that_cannot_be_answered(client: TestClient) -> None:
    for query in ("limit=x", "limit=0", "all=maybe", "offset=-1", "cursor=x", "cursor=1.2.m&offset=1"):
        assert client.get(f"{PATH}?{query}").status_code == 400, query
    assert client.post(PATH).status_code == 405
    assert client.get("/api/sessions/turnlog:talk").status_code == 404


def test_a_user_may_be_refused(store: Store) -> None:
    with TestClient(fastapi(UIMessageStore(store))) as client:
        assert client.get(PATH, headers={"user": "banned"}).status_code == 401


def test_a_store_is_wrapped_first(store: Store) -> None:
    with pytest.raises(TypeError, match="sessions cannot be SqliteStore: expected UIMessageStore"):
        ui_messages_endpoint(store)  # type: ignore[arg-type]  # the wrong type is the test


def test_what_a_chat_keeps_for_its_next_run_is_not_sent(tmp_path: Path) -> None:
    async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        yield RunStart(metadata={"turnlogPrivate": {"state": "hunter2"}, "shown": 1})
        yield TextDelta(id="t", delta="Hello")
        yield RunFinish(stop_reason="stop")

    keeper = NativeKeeper(tmp_path / "chats.db")
    chat = Chat(answer, keeper)
    told = asyncio.run(_ask(chat))
    with open_store(tmp_path / "chats.db") as store, TestClient(UIMessagesApp(UIMessageStore(store))) as client:
        page = client.get("/api/sessions/turnlog:chat/ui-messages").text
    keeper.close()
    for text in (told, page):
        assert "hunter2" not in text
        assert "Private" not in text
        assert '"shown":1' in text


async def _ask(chat: Chat) -> str:
    return (await drain(await chat.post(post()))).decode()
