"""A secret that is cut, at either end, leaves no piece: in pages, lists, hits, outputs and titles of exports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.exports import export_session
from turnlog.mcp.context import Subject, project_context
from turnlog.mcp.history import History, HistoryScope
from turnlog.model import (
    Message,
    MessageError,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolKind,
    ToolResult,
    ToolState,
)
from turnlog.model.session import title_from
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer

TOKEN = "ghp_a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"
LONG = "sk-ant-api03-" + "Ab3dEf6hIj9kLm2nOp5q" * 8
SHOP = "plain:shop"

# A title is cut at 80 or 120 characters and stored with 200; a prompt is previewed with 200.
PROMPTS = {f"at{offset}": "word " * (offset // 5) + TOKEN + " please" for offset in (50, 60, 85, 100, 115, 165, 180)}


def pieces(secret: str, text: str) -> set[str]:
    """The pieces of ten characters that a text has of a secret."""
    return {secret[at : at + 10] for at in range(len(secret) - 9)} & {text[at : at + 10] for at in range(len(text))}


def text_message(number: int, role: str, text: str) -> Message:
    origin = Origin.PROMPT if role == "user" else None
    return Message(id=f"m{number}", role=role, origin=origin, created_at=at(number), parts=(TextPart(text=text),))  # pyright: ignore[reportArgumentType]  # a role


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cut")
    logs = folder / "logs"
    logs.mkdir()
    for number, (name, prompt) in enumerate(PROMPTS.items()):
        log = Log(logs, name)
        log.session(project_path="/w/shop", cwd="/w/shop", titles={"prompt": title_from(prompt)})
        log.message(text_message(100 + 2 * number, "user", prompt))
        log.message(text_message(101 + 2 * number, "assistant", "so " * (125 + number) + TOKEN))
    shop = Log(logs, "shop")
    shop.session(project_path="/w/shop", cwd="/w/shop")
    shop.message(text_message(1, "user", f"marmot follows {LONG} and {TOKEN} here"))
    shop.message(text_message(2, "user", f"export {LONG}:walrus {LONG}"))
    output = "x" * 500 + f" {TOKEN} " + "y " * 2000 + f"{TOKEN} " + "z" * 250
    call = ToolCallPart(
        tool_call_id="c1",
        tool_name="Bash",
        kind=ToolKind.EXECUTE,
        input=msgspec.Raw(msgspec.json.encode({"command": "echo " + "a" * 1270 + f" {TOKEN} " + "b " * 900})),
        state=ToolState.OUTPUT_AVAILABLE,
        results=(ToolResult(id="r1", content=(TextPart(text=output),)),),
    )
    shop.message(Message(id="m3", role="assistant", created_at=at(3), parts=(call,)))
    # The store's preview of a long text has 8,000 characters.
    shop.message(text_message(4, "assistant", "w " * 3990 + TOKEN + " w" * 40_000))
    read_home(folder / "turnlog.db", logs)
    with Indexer(folder / "turnlog.db", search_path(folder / "turnlog.db")) as indexer:
        indexer.catch_up()
    return folder / "turnlog.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path) as opened:
        yield opened


@pytest.fixture
def history(store: Store, path: Path) -> Iterator[History]:
    history = History(store, path, HistoryScope("/w/shop"))
    yield history
    history.close()


def test_a_page_for_a_new_session_has_no_piece_of_a_cut_secret(store: Store) -> None:
    store.annotate(SHOP, note="n " * 190 + TOKEN, pins=["m2"])
    found = project_context(store, Subject("/w/shop"), max_tokens=20_000)
    assert all(section in found for section in ("asked last: ", "answered last: so so", "noted: n n", "pinned: export"))
    assert not pieces(TOKEN, found)
    assert not pieces(LONG, found)
    kept = project_context(store, Subject("/w/shop"), max_tokens=20_000, is_redacted=False)
    assert pieces(TOKEN, kept)
    assert pieces(LONG, kept)


def test_a_list_of_sessions_has_no_piece_of_a_cut_title(history: History) -> None:
    found = history.sessions()
    assert all(f"plain:{name} " in found for name in PROMPTS)
    assert not pieces(TOKEN, found)


@pytest.mark.parametrize("query", ["marmot", "walrus", "word please", "follows here"])
def test_a_hit_has_no_piece_of_a_secret_in_which_it_begins_or_ends(history: History, query: str) -> None:
    found = history.search(query)
    assert "plain:" in found
    assert not pieces(TOKEN, found)
    assert not pieces(LONG, found)


@pytest.mark.parametrize("tokens", [200, 220, 250, 5000, 50_000])
def test_a_session_has_no_piece_of_a_secret_where_it_is_shortened(history: History, tokens: int) -> None:
    pages = [history.session(SHOP, max_tokens=tokens)]
    while following := re.search(r"goes on: cursor=(\d+)$", pages[-1]):
        pages.append(history.session(SHOP, cursor=int(following[1]), max_tokens=tokens))
    assert all(not pieces(secret, page) for secret in (TOKEN, LONG) for page in pages)


@pytest.mark.parametrize("offset", [0, 480, 505, 520])
def test_an_output_has_no_piece_of_a_secret_at_its_offset(history: History, offset: int) -> None:
    found = history.output(SHOP, "c1", offset=offset, max_tokens=200)
    while following := re.search(r"offset=(\d+)", found):
        assert not pieces(TOKEN, found)
        found = history.output(SHOP, "c1", offset=int(following[1]), max_tokens=200)
    assert not pieces(TOKEN, found)


def test_a_password_that_is_named_later_is_masked_where_it_is_alone(tmp_path: Path) -> None:
    log = Log(tmp_path, "env")
    log.session(project_path="/w/shop", cwd="/w/shop", titles={"generated": "About hunter2horse"})
    log.message(text_message(1, "user", "Why is hunter2horse refused?"))
    whole = msgspec.Raw(b'{"command": "cat .env"}')
    call = ToolCallPart(
        tool_call_id="c1",
        tool_name="Bash",
        kind=ToolKind.EXECUTE,
        input=whole,
        state=ToolState.OUTPUT_AVAILABLE,
        results=(ToolResult(id="r1", content=(TextPart(text="DB_PASS=hunter2horse\nhunter2horse"),)),),
    )
    log.message(Message(id="m2", role="assistant", created_at=at(2), parts=(call,)))
    path = tmp_path / "turnlog.db"
    read_home(path, tmp_path)
    with open_store(path) as store, Indexer(path, search_path(path)) as indexer:
        indexer.catch_up()
        history = History(store, path, HistoryScope("/w/shop"))
        for _ in range(2):
            for answer in (history.session("plain:env"), history.output("plain:env", "c1")):
                assert "[REDACTED:password]" in answer
                assert "hunter2horse" not in answer
        history.close()
        page = project_context(store, Subject("/w/shop"))
        assert page.count("[REDACTED:password]") == 2
        assert "hunter2horse" not in page
        assert "hunter2horse" in project_context(store, Subject("/w/shop"), is_redacted=False)
        kept = History(store, path, HistoryScope("/w/shop", is_redacted=False))
        assert "Why is hunter2horse refused?" in kept.session("plain:env")
        kept.close()


@pytest.mark.parametrize("form", ["markdown", "html", "json"])
@pytest.mark.parametrize("name", PROMPTS)
def test_a_title_of_an_export_has_no_piece_of_a_secret_at_which_it_was_cut(store: Store, form: str, name: str) -> None:
    assert pieces(TOKEN, store.session(f"plain:{name}").title or "")
    made = export_session(store, f"plain:{name}", form, redact=True)
    assert not pieces(TOKEN, made.data.decode())
    if name == "at180":
        assert "cut" in {masked.rule for masked in made.masked}


def test_a_notice_in_the_place_of_an_answer_is_none(tmp_path: Path) -> None:
    notice = "Claude AI usage limit reached|1795240800"
    log = Log(tmp_path, "limited")
    log.session(project_path="/w/shop", cwd="/w/shop")
    log.message(text_message(1, "user", "Raise the limit"))
    log.message(text_message(2, "assistant", "Raised to 40."))
    by_agent = msgspec.structs.replace(text_message(3, "assistant", notice), origin=Origin.HARNESS)
    log.message(by_agent)
    log.message(msgspec.structs.replace(text_message(4, "assistant", notice), error=MessageError(text=notice)))
    read_home(tmp_path / "turnlog.db", tmp_path)
    with open_store(tmp_path / "turnlog.db") as store:
        found = project_context(store, Subject("/w/shop"))
    assert "answered last: Raised to 40." in found
    assert notice not in found


@pytest.mark.parametrize("before", range(0, 26, 5))
def test_a_session_has_no_piece_of_a_password_at_which_a_text_is_shortened(tmp_path: Path, before: int) -> None:
    secret = "copper4711staple9window77"
    log = Log(tmp_path, "env")
    log.session(project_path="/w/shop", cwd="/w/shop")
    log.message(text_message(1, "user", f"export DB_PASS={secret}"))
    rest = " " + "z" * 3000
    # An output and reasoning keep 800 characters, an input 2,000: two thirds of each are its beginning.
    kept = 800 - len("\n[… 3,000 characters or more left out: read_output with call='c1']\n")
    call = ToolCallPart(
        tool_call_id="c1",
        tool_name="Bash",
        kind=ToolKind.EXECUTE,
        input=msgspec.Raw(json.dumps({"command": "c" * (1280 - before) + f" {secret}" + rest}).encode()),
        state=ToolState.OUTPUT_AVAILABLE,
        results=(ToolResult(id="r1", content=(TextPart(text="o" * (kept * 2 // 3 - before) + f" {secret}" + rest),)),),
    )
    thought = ReasoningPart(text="t" * (520 - before) + f" {secret}" + rest)
    log.message(Message(id="m2", role="assistant", created_at=at(2), parts=(thought, call)))
    log.message(text_message(3, "assistant", "w" * (7_998 - before) + f" {secret}" + " z" * 40_000))
    path = tmp_path / "turnlog.db"
    read_home(path, tmp_path)
    with open_store(path) as store:
        history = History(store, path, HistoryScope("/w/shop"))
        found = history.session("plain:env", max_tokens=50_000)
        history.close()
    assert not {secret[at : at + 6] for at in range(len(secret) - 5)} & {found[at : at + 6] for at in range(len(found))}


def test_a_password_between_whose_letters_is_what_nobody_sees_stays_masked(tmp_path: Path) -> None:
    log = Log(tmp_path, "env")
    log.session(project_path="/w/shop", cwd="/w/shop")
    log.message(text_message(1, "user", "export DB_PASS=hunter2horse"))
    log.message(text_message(2, "user", "Why is hunter2\u200bhorse refused?"))
    path = tmp_path / "turnlog.db"
    read_home(path, tmp_path)
    with open_store(path) as store:
        assert "hunter2horse" not in project_context(store, Subject("/w/shop"))
