"""The access token, the codes that sign a browser in, and whose the other end of a connection is."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from support.event_streams import listening
from turnlog.errors import TurnlogError
from turnlog.platforms import connections
from turnlog.server import Settings, peers
from turnlog.server.access import (
    CODE_SECONDS,
    MOST_CODES,
    TOKEN_FILE,
    WRONG_CODES,
    WRONG_CODES_SECONDS,
    SignIn,
    SignInLink,
    TooManyCodesError,
    WrongCodeError,
    new_token,
    own_token,
    page_key,
    read_token,
)
from turnlog.server.peers import Peer, user_of

OpenClient = Callable[..., TestClient]

TOKEN = "a token that nobody guesses"
ANOTHER_USER = 65534

# -- the token


def test_tokens_have_256_bits_and_differ() -> None:
    tokens = {new_token() for _ in range(20)}
    assert len(tokens) == 20
    assert all(len(token) >= 43 for token in tokens)


def test_the_token_is_for_the_user_alone_and_stays(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    token = own_token(folder)
    file = folder / TOKEN_FILE
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert own_token(folder) == token
    file.unlink()
    assert own_token(folder) != token


def test_a_read_only_folder_has_a_token_for_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TurnlogError, match="cannot read the access token"):
        own_token(tmp_path / "file")
    assert len(own_token(Path("/proc/nowhere"))) >= 43


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_token_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    own_token(tmp_path)
    (tmp_path / TOKEN_FILE).chmod(mode)
    with pytest.raises(TurnlogError, match="other users can read"):
        own_token(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_a_token_that_another_user_has_laid_there_is_refused(tmp_path: Path) -> None:
    """Whoever opens a store in a folder for all must not take over what others have prepared."""
    own_token(tmp_path)
    os.chown(tmp_path / TOKEN_FILE, ANOTHER_USER, -1)
    with pytest.raises(TurnlogError, match="not a file of yours"):
        own_token(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n", b"caf\xc3\xa9", b"a\nb", b"\x00"])
def test_what_cannot_be_sent_in_a_header_is_no_token(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(TurnlogError, match="empty or no text"):
        read_token(file)


def test_what_is_no_file_is_no_token(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    own_token(tmp_path)
    (tmp_path / TOKEN_FILE).rename(kept)
    (tmp_path / "link").symlink_to(kept)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "pipe", "."):
        with pytest.raises(TurnlogError):
            read_token(tmp_path / name)


def test_the_key_of_the_page_says_nothing_of_the_token() -> None:
    assert TOKEN not in page_key(TOKEN)
    assert page_key(TOKEN) == page_key(TOKEN) != page_key(TOKEN + "x")


# -- codes


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def signing_in(tmp_path: Path, clock: Clock) -> SignIn:
    return SignIn(TOKEN, tmp_path, clock)


def code_of(link: SignInLink) -> str:
    found = re.fullmatch(r"http://127\.0\.0\.1:1/#code=([\w-]{22,})", link.address)
    assert found
    return found[1]


def new_code(signing_in: SignIn) -> str:
    return code_of(signing_in.link("http://127.0.0.1:1/", opened=False))


def test_a_code_works_once(signing_in: SignIn) -> None:
    first, second = new_code(signing_in), new_code(signing_in)
    assert first != second
    assert signing_in.redeem(first, "127.0.0.1") == page_key(TOKEN)
    for used in (first, first.upper() + "x", "", "\ud800"):
        with pytest.raises(WrongCodeError):
            signing_in.redeem(used, "127.0.0.1")
    assert signing_in.redeem(second, "127.0.0.1") == page_key(TOKEN)


def test_a_code_ends_after_ten_minutes_and_with_its_server(signing_in: SignIn, clock: Clock) -> None:
    early, late, last = (new_code(signing_in) for _ in range(3))
    clock.now = CODE_SECONDS - 1
    signing_in.redeem(early, "a")
    clock.now = CODE_SECONDS
    with pytest.raises(WrongCodeError):
        signing_in.redeem(late, "a")
    clock.now = 0
    last = new_code(signing_in)
    signing_in.close()
    with pytest.raises(WrongCodeError):
        signing_in.redeem(last, "a")


def test_of_many_codes_the_newest_work(signing_in: SignIn) -> None:
    codes = [new_code(signing_in) for _ in range(MOST_CODES + 1)]
    with pytest.raises(WrongCodeError):
        signing_in.redeem(codes[0], "a")
    signing_in.redeem(codes[1], "a")


def test_wrong_codes_are_limited_by_address_and_time(signing_in: SignIn, clock: Clock) -> None:
    code = new_code(signing_in)
    for number in range(WRONG_CODES):
        clock.now = number
        with pytest.raises(WrongCodeError):
            signing_in.redeem("guess", "thief")
    with pytest.raises(TooManyCodesError) as refused:
        signing_in.redeem(code, "thief")
    assert 0 < refused.value.seconds <= WRONG_CODES_SECONDS
    assert signing_in.redeem(code, "user") == page_key(TOKEN)
    clock.now = WRONG_CODES_SECONDS + 1
    with pytest.raises(WrongCodeError):
        signing_in.redeem("guess", "thief")


def test_addresses_without_number_use_no_memory_without_end(signing_in: SignIn) -> None:
    for number in range(3000):
        with pytest.raises(WrongCodeError):
            signing_in.redeem("guess", f"address {number}")
    assert len(vars(signing_in)["_wrong"]) <= 1000


def test_a_connection_without_an_owner_uses_a_temporary_file(
    signing_in: SignIn, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert signing_in.link("http://127.0.0.1:1/", opened=True).file is None
    monkeypatch.setattr(connections, "_TABLES", (tmp_path / "no proc",))
    assert signing_in.link("http://127.0.0.1:1/", opened=False).file is None
    used, expired, last = (signing_in.link("http://127.0.0.1:1/", opened=True) for _ in range(3))
    for link in (used, expired, last):
        assert link.file is not None
        assert stat.S_IMODE(link.file.stat().st_mode) == 0o600
        assert f'url={link.address}"' in link.file.read_text()
    signing_in.redeem(code_of(used), "a")
    assert [link.file.exists() for link in (used, expired, last) if link.file] == [False, True, True]
    clock.now = CODE_SECONDS
    last = signing_in.link("http://127.0.0.1:1/", opened=True)
    assert list(tmp_path.iterdir()) == [last.file]
    signing_in.close()
    assert list(tmp_path.iterdir()) == []


# -- whose a connection is


@pytest.mark.parametrize("way", ["asked", "looked up"])
@pytest.mark.parametrize(
    ("family", "address", "client"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET, "127.0.0.2", "127.0.0.2"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET, "127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_the_user_of_a_connection_is_known(
    family: int, address: str, client: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one question to the kernel, or by its tables; neither needs the other."""
    if way == "asked":
        monkeypatch.setattr(connections, "_TABLES", ())
    else:
        monkeypatch.setattr(connections, "_SOCK_DIAG", 99)
    with socket.create_server((address, 0), family=family) as server:
        port: int = server.getsockname()[1]
        with socket.create_connection((client, port)) as client_socket:
            accepted, peer = server.accept()
            end = (peer[0], peer[1])
            with accepted:
                assert user_of(end, (address, port)) == os.geteuid()
                client_socket.close()
                assert user_of(end, (address, port)) in (-1, None)
        assert user_of((address, port), (address, 9)) is None  # it listens there, and is nobody's other end
    assert user_of(("192.0.2.1", 5), ("127.0.0.1", port)) is None
    assert user_of(("testclient", 5), ("testserver", 80)) is None


def connect_as(user: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the system says that all connections are this user's."""

    def found(client: tuple[str, int], server: tuple[str, int]) -> int | None:
        return user

    monkeypatch.setattr(peers, "user_of", found)


def test_only_a_known_other_user_is_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = (("127.0.0.1", 1), ("127.0.0.1", 2))
    for user, foreign in ((None, False), (os.geteuid(), False), (0, False), (os.geteuid() + 7, True), (-1, True)):
        connect_as(user, monkeypatch)
        assert asyncio.run(Peer(*ends).is_foreign()) is foreign
        assert not asyncio.run(Peer(*ends, is_own=True).is_foreign())
        assert not asyncio.run(Peer(None, None).is_foreign())


def test_a_stolen_key_or_code_is_of_no_use_to_another_user(
    library: Path, open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is still open sends its key to whoever has taken over the port of its server."""
    client = open_client(library, Settings(token=TOKEN, static_folder=Path("nowhere")))
    bearer = {"Authorization": f"Bearer {page_key(TOKEN)}"}
    program = {"Authorization": f"Bearer {TOKEN}"}
    code = client.post("/api/sign-in/links", headers=program).json()["address"].partition("#code=")[2]
    connect_as(ANOTHER_USER, monkeypatch)
    assert client.get("/api/agents", headers=bearer).status_code == 403
    refused = client.post("/api/sign-in", json={"code": code})
    assert (refused.status_code, "another" in refused.text or "who started turnlog" in refused.text) == (403, True)
    # A program was given the token by the user, whoever it runs as.
    assert client.get("/api/agents", headers=program).status_code == 200
    monkeypatch.undo()
    assert client.get("/api/agents", headers=bearer).status_code == 200
    assert client.post("/api/sign-in", json={"code": code}).json() == {"key": page_key(TOKEN)}


ASK = 'exec 3<>/dev/tcp/127.0.0.1/"$1"; printf "%b" "$2" >&3; head -c 12 <&3'


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_of_the_machine_gets_nothing(library: Path) -> None:
    """The attack itself: from another account, with everything that can be seen or stolen there."""
    with listening(library, Settings(token=TOKEN)) as (address, app):
        port = address.rpartition(":")[2]
        link = app.state.context.sign_in.link(f"{address}/", opened=True)
        body = json.dumps({"code": link.address.partition("#code=")[2]})
        sign_in = f"POST /api/sign-in HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}"
        status = "GET /api/status HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n%s\\r\\n"
        asked = {
            "nothing": (status % "", "401"),
            "the key": (status % f"Authorization: Bearer {page_key(TOKEN)}\\r\\n", "403"),
            "the code": (sign_in, "403"),
        }
        for name, (request, expected) in asked.items():
            command = ["setpriv", f"--reuid={ANOTHER_USER}", "--clear-groups", "bash", "-c", ASK, "bash", port, request]
            got = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
            assert got == f"HTTP/1.1 {expected}", name
        answer = httpx2.post(f"{address}/api/sign-in", content=body, trust_env=False)
        assert answer.json() == {"key": page_key(TOKEN)}


# -- over HTTP


@pytest.fixture
def guarded(library: Path, open_client: OpenClient) -> TestClient:
    return open_client(library, Settings(token=TOKEN, static_folder=library.parent / "no web app"))


def test_a_link_is_made_for_who_is_let_in_only(guarded: TestClient) -> None:
    assert guarded.post("/api/sign-in/links").status_code == 401
    answer = guarded.post("/api/sign-in/links", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.headers["Cache-Control"] == "no-store"
    body: dict[str, Any] = answer.json()
    assert body["address"].startswith("http://127.0.0.1:8765/#code=")
    assert body["file"] is None
    signed_in = guarded.post("/api/sign-in", json={"code": body["address"].partition("#code=")[2]})
    assert (signed_in.json(), signed_in.headers["Cache-Control"]) == ({"key": page_key(TOKEN)}, "no-store")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"code":"wrong"}', 403),
        (b"{}", 422),
        (b'{"code":7}', 422),
        (b'{"code":"a","more":1}', 422),
        (b"code=a", 400),
        (b"", 400),
        (b'{"code":"' + b"x" * 2000 + b'"}', 413),
    ],
)
def test_what_is_no_code_signs_nobody_in(guarded: TestClient, body: bytes, status: int) -> None:
    answer = guarded.post("/api/sign-in", content=body)
    assert (answer.status_code, "key" in answer.json()) == (status, False)


def test_after_ten_wrong_codes_an_address_waits(guarded: TestClient) -> None:
    answers = [guarded.post("/api/sign-in", json={"code": "wrong"}) for _ in range(WRONG_CODES + 1)]
    assert [answer.status_code for answer in answers] == [403] * WRONG_CODES + [429]
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_no_other_site_signs_in(guarded: TestClient, headers: dict[str, str]) -> None:
    assert guarded.post("/api/sign-in", json={"code": "x"}, headers=headers).json()["error"]["type"] == "forbidden"


def test_where_no_token_is_needed_nobody_signs_in(client: TestClient) -> None:
    assert client.post("/api/sign-in", json={"code": "x"}).status_code == 409
    assert client.post("/api/sign-in/links").json() == {"address": "http://127.0.0.1:8765/", "file": None}
