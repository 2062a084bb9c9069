"""Chats of users: whose they are, and that they can be listed, renamed and deleted, in Python and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastapi import FastAPI, HTTPException, Request
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from support.chat_script import ANSWER, HALF, Script, drain, post, user
from turnlog.aisdk import parse_ui_messages
from turnlog.aisdk.streaming import Scope
from turnlog.chat import Chat, MemoryKeeper, NativeKeeper, UIMessagesApp, UIMessageStore
from turnlog.chat.fastapi import chat_endpoint, ui_messages_endpoint
from turnlog.chat.http import ChatApp
from turnlog.chat.keepers import LONGEST_CHAT
from turnlog.errors import ConflictError, NotFoundError
from turnlog.model import Ownership
from turnlog.runs.imports import import_runs
from turnlog.store import open_store
from turnlog.store.base import SessionFilter

Serve = Callable[[Chat], ASGIApp]
JSON = {"content-type": "application/json"}


def _owner(user: str, team: str) -> Ownership:
    if not user:
        raise HTTPException(401)
    if user == "nobody":
        return Ownership()
    return Ownership(user=user, team=team or None)


def plain(chat: Chat) -> ASGIApp:
    async def owner(scope: Scope) -> Ownership:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        return _owner(headers.get(b"user", b"").decode(), headers.get(b"team", b"").decode())

    return ChatApp(chat, owner=owner)


def fastapi(chat: Chat) -> ASGIApp:
    async def owner(request: Request) -> Ownership:
        return _owner(request.headers.get("user", ""), request.headers.get("team", ""))

    app = FastAPI()
    app.include_router(chat_endpoint(chat, owner=owner))
    return app


@pytest.fixture(params=[plain, fastapi])
def serve(request: pytest.FixtureRequest) -> Serve:
    return request.param


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[NativeKeeper]:
    found = NativeKeeper(tmp_path / "chats.db")
    yield found
    found.close()


def begin(client: TestClient, chat_id: str, user: str, text: str = "hi", team: str = "red") -> int:
    message = {"id": f"u-{chat_id}", "role": "user", "parts": [{"type": "text", "text": text}]}
    headers = JSON | {"user": user, "team": team}
    return client.post("/api/chat", content=post(chat_id, message=message), headers=headers).status_code


def test_a_user_lists_renames_and_deletes_chats(serve: Serve, keeper: NativeKeeper) -> None:
    """R-C6, R-C12, R-C15: newest first, page by page, over HTTP."""
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        for number in range(3):
            assert begin(client, f"chat {number}", "ann", f"question {number}") == 200
        assert begin(client, "other", "bob") == 200
        ann = {"user": "ann"}
        first = client.get("/api/chat?limit=2", headers=ann).json()
        assert [chat["title"] for chat in first["chats"]] == ["question 2", "question 1"]
        rest = client.get("/api/chat", params={"limit": 2, "cursor": first["nextCursor"]}, headers=ann).json()
        assert [chat["id"] for chat in rest["chats"]] == ["chat 0"]
        assert "nextCursor" not in rest
        assert rest["chats"][0]["ownership"] == {"user": "ann", "team": "red"}

        renamed = client.patch("/api/chat/chat 1", json={"title": "Mine"}, headers=ann)
        assert (renamed.status_code, renamed.json()["title"]) == (200, "Mine")
        assert client.patch("/api/chat/chat 1", json={"title": None}, headers=ann).json()["title"] == "question 1"
        assert client.delete("/api/chat/chat 1", headers=ann).status_code == 204
        left = client.get("/api/chat", headers=ann).json()["chats"]
        assert [chat["id"] for chat in left] == ["chat 2", "chat 0"]
        assert client.get("/api/chat/chat 1", headers=ann).json() == []
        assert client.delete("/api/chat/chat 1", headers=ann).status_code == 404
        assert begin(client, "chat 1", "ann") == 409


def test_who_has_no_name_has_the_chats_that_nobody_owns(serve: Serve, keeper: NativeKeeper) -> None:
    """In Python an owner without a name has all chats; a request without one must not open those of others."""
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        assert begin(client, "chat", "ann") == 200
        nobody = {"user": "nobody"}
        assert client.get("/api/chat", headers=nobody).json() == {"chats": []}
        assert client.get("/api/chat/chat", headers=nobody).status_code == 404
        assert client.delete("/api/chat/chat", headers=nobody).status_code == 404
        assert begin(client, "chat", "nobody") == 404
        assert begin(client, "free", "nobody") == 200
        assert [chat["id"] for chat in client.get("/api/chat", headers=nobody).json()["chats"]] == ["free"]


def test_somebody_elses_chat_is_as_one_that_does_not_exist(serve: Serve, keeper: NativeKeeper) -> None:
    """R-C15: a caller sees the own team's only."""
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        assert begin(client, "chat", "ann") == 200
        for headers in ({"user": "bob", "team": "red"}, {"user": "ann", "team": "blue"}):
            assert client.get("/api/chat", headers=headers).json() == {"chats": []}
            assert client.get("/api/chat/chat", headers=headers).status_code == 404
            assert client.get("/api/chat/chat/stream", headers=headers).status_code == 204
            assert client.post("/api/chat/chat/stop", headers=headers).status_code == 404
            assert client.patch("/api/chat/chat", json={"title": "x"}, headers=headers).status_code == 404
            assert client.delete("/api/chat/chat", headers=headers).status_code == 404
            refused = client.post("/api/chat", content=post("chat", message=user("x", "hi")), headers=JSON | headers)
            assert refused.status_code == 404
        assert client.get("/api/chat").status_code == 401 if serve is fastapi else True
        [chat] = client.get("/api/chat", headers={"user": "ann"}).json()["chats"]
        assert chat["title"] == "hi"


def unowned(chat: Chat, kind: Serve) -> ASGIApp:
    """The same chats on a server that asks nobody who they are."""
    if kind is plain:
        return ChatApp(chat)
    app = FastAPI()
    app.include_router(chat_endpoint(chat))
    return app


def test_a_server_without_owners_has_only_chats_that_nobody_owns(serve: Serve, keeper: NativeKeeper) -> None:
    """R-C15: beside an app with owners in the same store, and page by page."""
    chat = Chat(Script(ANSWER), keeper)
    with TestClient(serve(chat)) as client:
        assert begin(client, "ann's", "ann") == 200
    with TestClient(unowned(chat, serve)) as client:
        for number in range(3):
            assert begin(client, f"free {number}", "") == 200
        first = client.get("/api/chat?limit=2").json()
        rest = client.get("/api/chat", params={"limit": 2, "cursor": first["nextCursor"]}).json()
        assert [chat["id"] for chat in first["chats"] + rest["chats"]] == ["free 2", "free 1", "free 0"]

        assert client.get("/api/chat/ann's").status_code == 404
        assert client.get("/api/chat/ann's/stream").status_code == 204
        assert client.post("/api/chat/ann's/stop").status_code == 404
        assert client.patch("/api/chat/ann's", json={"title": "x"}).status_code == 404
        assert client.delete("/api/chat/ann's").status_code == 404
        assert begin(client, "ann's", "") == 404
        assert client.patch("/api/chat/free 1", json={"title": "x"}).status_code == 200
        assert client.delete("/api/chat/free 1").status_code == 204
    with TestClient(serve(chat)) as client:
        [found] = client.get("/api/chat", headers={"user": "ann"}).json()["chats"]
        assert (found["id"], found["title"]) == ("ann's", "hi")


def test_all_chats_can_be_asked_for(keeper: NativeKeeper) -> None:
    chat = Chat(Script(ANSWER), keeper)

    async def run() -> None:
        await drain(await chat.post(post("hers", message=user("u1", "hi")), owner=Ownership(user="ann")))
        await drain(await chat.post(post("free", message=user("u2", "hi"))))
        assert [each.id for each in (await chat.chats()).chats] == ["free"]
        assert {each.id for each in (await chat.chats(owner=Ownership())).chats} == {"hers", "free"}
        assert len(await chat.messages("hers", owner=Ownership())) == 2
        with pytest.raises(NotFoundError):
            await chat.messages("hers")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b'{"title": 5}', "application/json", 400),
        (b'{"name": "x"}', "application/json", 400),
        (b'{"title": "%b"}' % (b"x" * 1001), "application/json", 400),
        (b'{"title": "x"}', "text/plain", 415),
    ],
)
def test_a_title_is_checked(serve: Serve, keeper: NativeKeeper, body: bytes, kind: str, status: int) -> None:
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        begin(client, "chat", "ann")
        answer = client.patch("/api/chat/chat", content=body, headers={"content-type": kind, "user": "ann"})
        assert answer.status_code == status
        assert client.get("/api/chat", headers={"user": "ann"}).json()["chats"][0]["title"] == "hi"


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "cursor=x"])
def test_a_page_is_checked(serve: Serve, keeper: NativeKeeper, query: str) -> None:
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        assert client.get(f"/api/chat?{query}", headers={"user": "ann"}).status_code == 400


def test_a_chat_that_is_being_answered_is_ended_and_deleted(serve: Serve, keeper: NativeKeeper) -> None:
    chat = Chat(Script((*HALF, None)), keeper)

    async def run() -> None:
        stream = await chat.post(post(), owner=Ownership(user="ann"))
        await anext(stream)
        await chat.delete("chat", owner=Ownership(user="ann"))
        await drain(stream)
        assert await chat.messages("chat") == []
        with pytest.raises(NotFoundError):
            await chat.rename("chat", "gone")

    asyncio.run(run())


def test_a_deleted_chat_takes_no_message_that_it_had(serve: Serve, keeper: NativeKeeper) -> None:
    """Another tab may send again what it shows; nobody is told from others here, so the keeper has to refuse it."""
    chat = Chat(Script(ANSWER), keeper)

    async def run() -> None:
        await drain(await chat.post(post()))
        await chat.delete("chat")
        with pytest.raises(ConflictError, match=r"^chat \w+ was deleted$"):
            await chat.post(post())

    asyncio.run(run())


def test_chats_in_python(keeper: NativeKeeper, tmp_path: Path) -> None:
    """R-C6, R-C12, R-C15: by user, team and task; the owner can be changed."""
    chat = Chat(Script(ANSWER), keeper)

    async def run() -> None:
        owners = {
            "a/b": Ownership(user="ann", team="red", task="t1"),
            "two": Ownership(user="bob", team="red"),
            "three": Ownership(user="ann"),
        }
        for chat_id, owner in owners.items():
            await drain(await chat.post(post(chat_id, message=user(f"u{chat_id}", chat_id)), owner=owner))
        await drain(await chat.post(post("nobody's", message=user("u4", "hello"))))

        async def ids(**names: str) -> list[str]:
            return sorted([each.id for each in (await keeper.chats(msgspec.convert(names, Ownership))).chats])

        assert await ids() == ["a/b", "nobody's", "three", "two"]
        assert await ids(user="ann") == ["a/b", "three"]
        assert await ids(team="red") == ["a/b", "two"]
        assert await ids(task="t1", user="ann") == ["a/b"]
        assert (await keeper.chats(title="HELL")).chats[0].id == "nobody's"
        with pytest.raises(NotFoundError):
            await keeper.rename("two", "x", Ownership(user="ann"))
        moved = await keeper.change_owner("nobody's", Ownership(user="ann"))
        assert moved.ownership == Ownership(user="ann")
        assert await ids(user="ann") == ["a/b", "nobody's", "three"]
        await keeper.delete("two")
        with pytest.raises(ConflictError, match=r"^chat \w+ was deleted$"):
            await chat.post(post("two", message=user("u5", "again")))

    asyncio.run(run())
    with open_store(tmp_path / "chats.db") as store:
        found = store.sessions(SessionFilter(team="red")).items
        assert [session.id for session in found] == ["turnlog:a%2Fb"]


def test_a_request_brings_its_owner_and_dependencies(keeper: NativeKeeper) -> None:
    script = Script(ANSWER)
    app = FastAPI()

    async def owner(request: Request) -> Ownership:
        return Ownership(user=request.headers["user"])

    async def dependencies(request: Request) -> dict[str, str]:
        return {"path": request.url.path}

    app.include_router(chat_endpoint(Chat(script, keeper), owner=owner, dependencies=dependencies))
    with TestClient(app) as client:
        begin(client, "chat", "ann")
    assert script.given[-1].owner == Ownership(user="ann")
    assert script.given[-1].dependencies == {"path": "/api/chat"}


def test_only_who_knows_owners_can_keep_their_chats(caplog: pytest.LogCaptureFixture) -> None:
    async def owner(scope: Scope) -> Ownership:
        return Ownership(user="ann")

    with pytest.raises(TypeError, match=r"MemoryKeeper neither lists chats nor knows their owners: use NativeKeeper"):
        ChatApp(Chat(Script(ANSWER), MemoryKeeper()), owner=owner)
    with TestClient(ChatApp(Chat(Script(ANSWER)))) as client:
        answer = client.get("/api/chat")
        assert (answer.status_code, answer.text) == (405, "this server keeps no list of chats")
        answer = client.delete("/api/chat/chat")
        assert (answer.status_code, answer.text) == (405, "this server cannot delete chats")
        answer = client.patch("/api/chat/chat", json={"title": "x"})
        assert (answer.status_code, answer.text) == (405, "this server cannot rename chats")
    assert "MemoryKeeper neither lists chats nor knows their owners: use NativeKeeper" in caplog.text


def test_chats_whose_ids_a_key_makes_are_listed_to_nobody(keeper: NativeKeeper) -> None:
    async def key(scope: Scope, chat_id: str) -> str:
        return f"ann.{chat_id}"

    with TestClient(ChatApp(Chat(Script(ANSWER), keeper), key=key)) as client:
        assert client.post("/api/chat", content=post(), headers=JSON).status_code == 200
        answer = client.get("/api/chat")
        assert (answer.status_code, answer.text) == (405, "this server keeps no list of chats")


@pytest.mark.parametrize("name", ["stream", "stop"])
def test_a_chat_may_be_called_like_a_route(serve: Serve, keeper: NativeKeeper, name: str) -> None:
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        assert begin(client, f"a/{name}", "ann", "odd") == 200
        assert len(client.get(f"/api/chat/a%2F{name}", headers={"user": "ann"}).json()) == 2
        assert client.get("/api/chat/a/stream", headers={"user": "ann"}).status_code == 204


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "", "GET, POST"),
        ("POST", "/a", "DELETE, GET, PATCH"),
        ("POST", "/a%2Fstop", "DELETE, GET, PATCH"),
        ("DELETE", "/a/stop", "POST"),
        ("PATCH", "/a/stream", "GET"),
    ],
)
def test_a_refused_method_names_all_that_the_address_takes(
    method: str, path: str, allowed: str, serve: Serve, keeper: NativeKeeper
) -> None:
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        refused = client.request(method, f"/api/chat{path}", headers={"user": "ann"})
        assert (refused.status_code, refused.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(("chat_id", "message_id"), [("x" * 600, "u"), ("é" * 70, "u"), ("c", "u" * 600)])
def test_an_id_that_is_too_long_is_the_page_s_mistake(
    serve: Serve, keeper: NativeKeeper, chat_id: str, message_id: str
) -> None:
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        refused = client.post(
            "/api/chat", content=post(chat_id, message=user(message_id)), headers={**JSON, "user": "ann"}
        )
        assert refused.status_code == 400
        assert "is too long" in refused.text


@pytest.mark.parametrize("chat_id", ["a\nb", "a\r", "\x00", "a\tb", "\x7f"])
def test_an_id_with_a_line_break_is_the_page_s_mistake(serve: Serve, keeper: NativeKeeper, chat_id: str) -> None:
    """No address would lead to the chat again."""
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        refused = client.post("/api/chat", content=post(chat_id), headers={**JSON, "user": "ann"})
        assert refused.status_code == 400
        assert "cannot hold a line break" in refused.text


def test_a_body_that_is_nested_too_deeply_is_the_page_s_mistake(serve: Serve, keeper: NativeKeeper) -> None:
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        for levels in (100, 900, 5000, 100_000):
            deep = b"[" * levels + b"]" * levels
            body = post(message={**user(f"u{levels}"), "metadata": "deep"}).replace(b'"deep"', deep)
            answer = client.post("/api/chat", content=body, headers={**JSON, "user": "ann"})
            assert answer.status_code == (200 if levels == 100 else 400), levels


def test_the_longest_chat_gets_its_answer(serve: Serve, keeper: NativeKeeper) -> None:
    name = "x" * (LONGEST_CHAT - len("turnlog:"))
    with TestClient(serve(Chat(Script(ANSWER), keeper))) as client:
        assert client.post("/api/chat", content=post(name), headers={**JSON, "user": "ann"}).status_code == 200
        assert len(client.get(f"/api/chat/{name}", headers={"user": "ann"}).json()) == 2


def test_imported_runs_are_no_chats(keeper: NativeKeeper, tmp_path: Path) -> None:
    """They are native sessions too: a list of everybody's chats would begin with them."""

    async def talk() -> list[str]:
        await drain(await Chat(Script(ANSWER), keeper).post(post("mine")))
        return [chat.id for chat in (await keeper.chats()).chats]

    record = b'{"id": "r1", "prompt": "Fix it", "result": "Fixed.", "status": "completed"}'
    assert import_runs(tmp_path / "chats.db", record).problems == []
    assert asyncio.run(talk()) == ["mine"]
    with open_store(tmp_path / "chats.db") as store:
        assert {s.id for s in store.sessions(SessionFilter(native=True)).items} == {"turnlog:mine", "turnlog:run-r1"}
        assert [s.id for s in store.sessions(SessionFilter(imported=True)).items] == ["turnlog:run-r1"]


def ways_in(keeper: NativeKeeper, sessions: UIMessageStore, **given: Any) -> list[tuple[ASGIApp, str]]:
    """Every endpoint that asks who sends a request, with an address of it."""
    ours, theirs = FastAPI(), FastAPI()
    ours.include_router(chat_endpoint(Chat(Script(ANSWER), keeper), **given))
    theirs.include_router(ui_messages_endpoint(sessions, owner=given["owner"]))
    return [
        (ours, "/api/chat/free"),
        (ChatApp(Chat(Script(ANSWER), keeper), **given), "/api/chat/free"),
        (theirs, "/api/sessions/turnlog:free/ui-messages"),
        (UIMessagesApp(sessions, owner=given["owner"]), "/api/sessions/turnlog:free/ui-messages"),
    ]


@pytest.fixture
def free(keeper: NativeKeeper) -> NativeKeeper:
    """A keeper with a chat that nobody owns."""
    asyncio.run(keeper.save("free", parse_ui_messages([user("u1", "hi")])))
    return keeper


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "owner returned None"),
        ("ann", "owner returned 'ann' (str)"),
        ({"user": "ann"}, "owner returned dict"),
    ],
)
def test_a_forgotten_return_opens_no_chats(
    returned: object, reason: str, free: NativeKeeper, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def owner(request: object) -> Any:
        return returned

    with open_store(tmp_path / "chats.db") as store:
        for app, address in ways_in(free, UIMessageStore(store), owner=owner):
            caplog.clear()
            with TestClient(app) as client:
                answer = client.get(address)
                assert (answer.status_code, answer.text) == (500, "the server failed to answer; its log has the reason")
            wanted = "return Ownership(user=…), or Ownership() for somebody without a name, or raise"
            assert [record.getMessage() for record in caplog.records if record.name == "turnlog.chat.http"] == [
                f"a chat's request failed: {reason}: {wanted}"
            ]


def test_a_forgotten_return_begins_and_lists_nothing(free: NativeKeeper) -> None:
    def owner(request: object) -> Any:
        return None

    app = FastAPI()
    app.include_router(chat_endpoint(Chat(Script(ANSWER), free), owner=owner))
    for each in (app, ChatApp(Chat(Script(ANSWER), free), owner=owner)):
        with TestClient(each) as client:
            assert client.get("/api/chat").status_code == 500
            assert client.delete("/api/chat/free").status_code == 500
            assert begin(client, "new", "ann") == 500
    assert [chat.id for chat in asyncio.run(free.chats(None)).chats] == ["free"]


def test_a_key_without_an_id_opens_no_chat(free: NativeKeeper, caplog: pytest.LogCaptureFixture) -> None:
    def key(request: object, chat_id: str) -> Any:
        return None

    app = FastAPI()
    app.include_router(chat_endpoint(Chat(Script(ANSWER), free), key=key))
    for each in (app, ChatApp(Chat(Script(ANSWER), free), key=key)):
        caplog.clear()
        with TestClient(each) as client:
            assert client.get("/api/chat/free").status_code == 500
            assert begin(client, "free", "ann") == 500
        assert caplog.text.count("key returned None: return the server's id of the chat, or raise") == 2


def test_functions_of_an_endpoint_may_be_plain(free: NativeKeeper, tmp_path: Path) -> None:
    def owner(request: object) -> Ownership:
        return Ownership()

    def dependencies(request: object) -> str:
        return "database"

    def key(request: object, chat_id: str) -> str:
        return f"ann.{chat_id}"

    with open_store(tmp_path / "chats.db") as store:
        given: dict[str, Any] = {"owner": owner, "dependencies": dependencies}
        for app, address in ways_in(free, UIMessageStore(store), **given):
            with TestClient(app) as client:
                assert client.get(address).status_code == 200
        script = Script(ANSWER)
        with TestClient(ChatApp(Chat(script), key=key, dependencies=dependencies)) as client:
            assert begin(client, "chat", "ann") == 200
        assert (script.given[-1].chat_id, script.given[-1].dependencies) == ("ann.chat", "database")


def test_a_path_may_end_with_a_slash(free: NativeKeeper) -> None:
    app = FastAPI()
    app.include_router(chat_endpoint(Chat(Script(ANSWER), free), "/api/slash/"))
    for each in (app, ChatApp(Chat(Script(ANSWER), free), "/api/slash/")):
        with TestClient(each) as client:
            for address in ("/api/slash", "/api/slash/free"):
                assert client.get(address).status_code == 200
