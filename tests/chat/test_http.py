"""The endpoint's answers over HTTP, in both of its forms: a plain ASGI application and FastAPI's routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import Depends, FastAPI, HTTPException, Request
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from support.chat_script import ANSWER, HALF, STREAM_HEADERS, Script, post
from turnlog.aisdk import UIMessage
from turnlog.aisdk.streaming import Scope
from turnlog.chat import Chat, MemoryKeeper, NativeKeeper
from turnlog.chat.fastapi import chat_endpoint
from turnlog.chat.http import ChatApp
from turnlog.model.stream import StreamEvent

Serve = Callable[[Chat], ASGIApp]


def plain(chat: Chat) -> ASGIApp:
    async def key(scope: Scope, chat_id: str) -> str:
        return _key(dict(scope["headers"]).get(b"user", b"").decode(), chat_id)

    return ChatApp(chat, max_bytes=1000, key=key)


def fastapi(chat: Chat) -> ASGIApp:
    async def key(request: Request, chat_id: str) -> str:
        return _key(request.headers.get("user", ""), chat_id)

    app = FastAPI()
    app.include_router(chat_endpoint(chat, max_bytes=1000, key=key))
    return app


def _key(user: str, chat_id: str) -> str:
    if user == "nobody":
        raise HTTPException(403)
    return f"{user}.{chat_id}"


@pytest.fixture(params=[plain, fastapi])
def serve(request: pytest.FixtureRequest) -> Serve:
    return request.param


JSON = {"content-type": "application/json"}


def test_an_answer_streams_with_the_protocols_headers_and_its_end(serve: Serve) -> None:
    """R-O27."""
    with TestClient(serve(Chat(Script(ANSWER)))) as client:
        answer = client.post("/api/chat", content=post(), headers=JSON)
        assert answer.status_code == 200
        assert {name: answer.headers[name] for name in STREAM_HEADERS} == STREAM_HEADERS
        assert answer.content.endswith(b"data: [DONE]\n\n")
        assert client.get("/api/chat/chat").json()[0]["id"] == "u"
        assert client.get("/api/chat/never seen").json() == []


def test_nothing_to_resume_and_nothing_to_stop(serve: Serve) -> None:
    """R-O22."""
    with TestClient(serve(Chat(Script(ANSWER)))) as client:
        for answer in (client.get("/api/chat/a b/c/stream"), client.post("/api/chat/a b/c/stop")):
            assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (post(trigger="regenerate-message", messages=[]), "application/json; charset=utf-8", 404),
        (b" " * 2000, "application/json", 413),
        (post(), "text/plain", 415),
        (post(), "", 415),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(serve: Serve, body: bytes, kind: str, status: int) -> None:
    with TestClient(serve(Chat(Script(ANSWER)))) as client:
        answer = client.post("/api/chat", content=body, headers={"content-type": kind})
        assert answer.status_code == status
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert len(answer.text) > 10


def test_what_nobody_foresaw_is_written_to_the_log_only(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryKeeper):
        async def load(self, chat_id: str) -> list[UIMessage]:
            raise OSError("the path /secret")

    with TestClient(serve(Chat(Script(ANSWER), Broken()))) as client:
        for answer in (client.post("/api/chat", content=post(), headers=JSON), client.get("/api/chat/chat")):
            assert answer.status_code == 500
            assert "secret" not in answer.text
    assert "/secret" in caplog.text


def test_every_user_has_chats_of_their_own(serve: Serve) -> None:
    with TestClient(serve(Chat(Script(ANSWER)))) as client:
        client.post("/api/chat", content=post(), headers=JSON | {"user": "one"})
        assert len(client.get("/api/chat/chat", headers={"user": "one"}).json()) == 2
        assert client.get("/api/chat/chat", headers={"user": "two"}).json() == []


def test_who_may_not_is_refused() -> None:
    with TestClient(fastapi(Chat(Script(ANSWER)))) as client:
        refused = client.post("/api/chat", content=post(), headers=JSON | {"user": "nobody"})
        assert refused.status_code == 403
        assert client.get("/api/chat/chat/stream", headers={"user": "nobody"}).status_code == 403


def test_the_end_of_the_server_ends_its_answers_and_keeps_them(serve: Serve) -> None:
    keeper = MemoryKeeper()
    half: tuple[StreamEvent | None, ...] = (*HALF, None)

    async def run() -> None:
        chat = Chat(Script(half), keeper)
        with TestClient(serve(chat)) as client:
            assert client.portal is not None
            client.portal.call(chat.post, post(".chat"))
            client.portal.call(asyncio.sleep, 0.05)
        assert b"Hel" in repr(await keeper.load(".chat")).encode()

    asyncio.run(run())


def test_other_paths_are_not_ours(serve: Serve) -> None:
    with TestClient(serve(Chat(Script(ANSWER)))) as client:
        for path in ("/else", "/api/chats", "/api"):
            assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "", "POST"),
        ("GET", "", "POST"),
        ("HEAD", "", "POST"),
        ("PUT", "/a", "GET"),
        ("POST", "/a/b", "GET"),
        ("DELETE", "/a", "GET"),
        ("PUT", "/a/stop", "POST"),
        ("GET", "/a/stop", "POST"),
        ("DELETE", "/a/stream", "GET"),
        ("POST", "/a%2Fstop", "GET"),
        ("POST", "/stop", "GET"),
    ],
)
def test_a_refused_method_names_all_that_the_address_takes(method: str, path: str, allowed: str, serve: Serve) -> None:
    """RFC 9110, 15.5.6: a keeper that knows no owners lists, renames and deletes nothing."""
    with TestClient(serve(Chat(Script(ANSWER)))) as client:
        refused = client.request(method, f"/api/chat{path}")
        assert (refused.status_code, refused.headers["allow"]) == (405, allowed)


def test_dependencies_of_all_routes_hold_at_every_address() -> None:
    def sign_in(request: Request) -> None:
        if "user" not in request.headers:
            raise HTTPException(401)

    app = FastAPI(dependencies=[Depends(sign_in)])
    app.include_router(chat_endpoint(Chat(Script(ANSWER))))
    with TestClient(app) as client:
        for path in ("", "/", "/?x=1", "/a", "/a/", "/a/stop", "/a%2Fstop", "//stop", "/a/stream", "//"):
            for method in ("GET", "POST", "PATCH", "DELETE", "PUT"):
                answer = client.request(method, f"/api/chat{path}", content=post(), headers=JSON)
                assert answer.status_code in (401, 405), (method, path)


def test_a_key_alone_lists_no_chats_and_none_is_promised(serve: Serve, tmp_path: Path) -> None:
    with TestClient(serve(Chat(Script(ANSWER), NativeKeeper(tmp_path / "turnlog.db")))) as client:
        assert [client.request(method, "/api/chat").headers["allow"] for method in ("GET", "PUT")] == ["POST", "POST"]
        assert client.put("/api/chat/a").headers["allow"] == "DELETE, GET, PATCH"


def test_a_message_may_be_sent_to_the_address_with_a_slash_behind_it(serve: Serve) -> None:
    with TestClient(serve(Chat(Script(ANSWER)))) as client:
        answer = client.post("/api/chat/", content=post(), headers=JSON, follow_redirects=False)
        assert answer.content.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_a_method_of_the_applications_own_is_not_refused(prefix: str) -> None:
    app = FastAPI()
    app.include_router(chat_endpoint(Chat(Script(ANSWER))), prefix=prefix)
    app.add_api_route(f"{prefix}/api/chat", lambda: "mine", methods=["DELETE"])
    with TestClient(app) as client:
        assert client.put(f"{prefix}/api/chat/a/stop").headers["allow"] == "POST"
        assert client.delete(f"{prefix}/api/chat").json() == "mine"
