"""The terminal application, driven by Textual's pilot over sessions that real agents have logged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static
from textual.worker import WorkerCancelled

from turnlog.errors import NotFoundError
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.rows import TURN_ORIGINS
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.sync.syncer import sync
from turnlog.tui.app import AppContext, TurnlogApp
from turnlog.tui.listing import Filters, Listing
from turnlog.tui.preview import Preview, read
from turnlog.tui.screens import KEYS, HandoverScreen
from turnlog.tui.session_list import SessionList

AppPilot = Pilot[Any]


@pytest.fixture(scope="module")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tui") / "store.db"
    sync(path, roots=[LOGS / "claude-code", LOGS / "codex"])
    with Indexer(path, search_path(path)) as indexer:
        indexer.catch_up()
    return path


@pytest.fixture
def programs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs called as the agents are, so that a session could be resumed."""
    (home / "bin").mkdir()
    for name in ("claude", "codex"):
        (home / "bin" / name).write_text("#!/bin/sh\n")
        (home / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(home / "bin"))


Act = Callable[[AppPilot, TurnlogApp], Awaitable[None]]


def drive(store_path: Path, act: Act, size: tuple[int, int] = (80, 24)) -> TurnlogApp:
    """The application after these acts."""

    def open_page(session_id: str) -> str:
        raise NotFoundError("no server runs")

    async def run(app: TurnlogApp) -> TurnlogApp:
        async with app.run_test(size=size) as pilot:
            await settled(pilot, app)
            await act(pilot, app)
        return app

    # The loop waits for its threads when it ends: what they read is closed after that.
    with open_store(store_path) as store, closing(Listing(store, store_path)) as listing:
        return asyncio.run(run(TurnlogApp(AppContext(store, listing, lambda: None, open_page))))


async def settled(pilot: AppPilot, app: TurnlogApp) -> None:
    """Wait until timers and threads that keys have started are done."""
    await pilot.pause(0.1)
    while len(app.workers):
        # A worker that another one replaces is cancelled meanwhile.
        with suppress(WorkerCancelled):
            await app.workers.wait_for_complete()  # pyright: ignore[reportUnknownMemberType]  # workers of any result
        await pilot.pause()
    await pilot.pause()


async def press(pilot: AppPilot, app: TurnlogApp, *keys: str) -> None:
    await pilot.press(*keys)
    await settled(pilot, app)


async def search(pilot: AppPilot, app: TurnlogApp, query: str) -> None:
    app.query_one(Input).value = query
    await settled(pilot, app)


def text_of(app: TurnlogApp) -> str:
    return "\n".join(line.text for line in app.query_one(Preview).lines)


def in_sight(app: TurnlogApp) -> str:
    shown = app.query_one(Preview)
    first = round(shown.scroll_offset.y)
    return "\n".join(line.text for line in shown.lines[first : first + shown.size.height])


def titles(app: TurnlogApp) -> list[str]:
    listed = app.query_one(SessionList)
    return [listed.render_line(y).text.split("  ")[1].strip() for y in range(listed.count)]


def status(app: TurnlogApp) -> str:
    return str(app.query_one("#status", Static).content)


def test_a_session_begins_with_its_first_prompt(store_path: Path) -> None:
    """Codex writes its instructions and the folder's before it."""
    with open_store(store_path) as store:
        sessions = store.sessions(limit=100).items
        begun = {each.id: store.messages(each.id, limit=1)[0].message.origin for each in sessions}
        shown = {each.id: read(store, each.id)[0].message.origin for each in sessions}
    assert any(origin not in TURN_ORIGINS for origin in begun.values())
    assert all(origin in TURN_ORIGINS for origin in shown.values())


def test_all_sessions_are_listed_and_the_current_one_is_shown(store_path: Path) -> None:
    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        with open_store(store_path) as store:
            expected = store.sessions(limit=100).items
        assert app.query_one(SessionList).count == len(expected)
        assert expected[0].title
        assert expected[0].title in text_of(app)
        await press(pilot, app, "down")
        assert (expected[1].title or "") in text_of(app)
        assert f"{len(expected)} sessions" in status(app)

    drive(store_path, act)


def test_typing_searches_everything_and_shows_the_hit(store_path: Path) -> None:
    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        everything = app.query_one(SessionList).count
        await press(pilot, app, "slash", *"picture")
        found = app.query_one(SessionList).count
        assert 0 < found < everything
        assert "picture" in text_of(app)
        # A beginning of a word is enough while it is typed, and letters are no commands in the search.
        await press(pilot, app, "backspace", "backspace")
        assert app.query_one(SessionList).count >= found
        await press(pilot, app, *"qz")
        assert "nothing found" in status(app)
        await press(pilot, app, "escape", "escape")
        assert app.query_one(Input).value == ""
        assert app.query_one(SessionList).count == everything

    drive(store_path, act)


def test_the_line_that_was_found_is_in_sight(store_path: Path) -> None:
    word = "picture"

    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        await search(pilot, app, f"{word} role:assistant")
        sessions = app.query_one(SessionList)
        seen = 0
        for number in range(sessions.count):
            if number:
                await press(pilot, app, "down")
            if word in text_of(app).casefold():
                assert word in in_sight(app).casefold(), number
                seen += 1
        assert seen

    drive(store_path, act)


def test_a_session_shows_its_parts_and_diffs(store_path: Path) -> None:
    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        await search(pilot, app, "tour agent:claude-code")
        await press(pilot, app, "b")
        text = text_of(app)
        assert "> Give me a tour of the tools, please" in text
        assert "∴ " in text
        assert "• Bash" in text
        lines = [line.strip() for line in text.splitlines()]
        assert any(line.startswith("+") and not line.startswith("+++") for line in lines)

    drive(store_path, act, size=(140, 40))


def test_filters_narrow_the_list(store_path: Path) -> None:
    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        everything = app.query_one(SessionList).count
        await press(pilot, app, "a")
        only = app.query_one(SessionList).row
        assert "claude-code" in status(app)
        assert only is not None
        assert only.agent == "claude-code"
        assert app.query_one(SessionList).count < everything
        await press(pilot, app, "p")
        assert only.project in status(app)
        await press(pilot, app, "asterisk", "s")
        assert app.query_one(SessionList).count == 1
        assert "starred" in status(app)
        await press(pilot, app, "asterisk", "escape")
        assert app.query_one(SessionList).count == everything

    drive(store_path, act)


def test_nothing_fails_while_the_application_ends(store_path: Path) -> None:
    """A timer or a thread may still call when the widgets are gone already."""

    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        assert app.query_one(SessionList).row is not None
        for end in (app.action_beginning, app._show_session, app._show_status, app._look):  # pyright: ignore[reportPrivateUsage]
            await app.screen.remove_children()
            end()

    drive(store_path, act)


@pytest.mark.usefixtures("programs")
def test_enter_resumes_or_says_why_not(store_path: Path, home: Path) -> None:
    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        await press(pilot, app, "enter")

    refused = drive(store_path, act)
    assert refused.return_value is None
    assert "folder of the session is gone" in " ".join(note.message for note in refused._notifications)  # pyright: ignore[reportPrivateUsage]  # no other way to see them


@pytest.mark.usefixtures("programs")
def test_another_key_hands_over_to_an_agent_that_is_chosen(store_path: Path) -> None:
    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        await search(pilot, app, "tour agent:claude-code")
        await press(pilot, app, "h")
        assert isinstance(app.screen, HandoverScreen)
        choices = app.screen.query_one(OptionList)
        assert str(choices.options[0].prompt) == "Codex"
        await press(pilot, app, "enter")

    done = drive(store_path, act)
    assert done.return_value is not None
    assert done.return_value[0] == "resume"
    assert done.return_value[1].startswith("claude-code:")
    assert done.return_value[2:] == ["--in", "codex"]


def test_where_no_agent_is_installed_the_choice_says_so(
    store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        await press(pilot, app, "h")
        options = app.screen.query_one(OptionList).options
        assert options
        assert all("(not installed)" in str(option.prompt) for option in options)
        assert "None of these agents is installed" in str(app.screen.query_one("#report", Static).content)

    drive(store_path, act)


def test_o_opens_the_page_or_says_why_not(store_path: Path) -> None:
    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        await press(pilot, app, "o")

    app = drive(store_path, act)
    assert "no server runs" in " ".join(note.message for note in app._notifications)  # pyright: ignore[reportPrivateUsage]  # no other way to see them


def test_every_key_is_listed_and_does_something(store_path: Path) -> None:
    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        await press(pilot, app, "question_mark")
        shown = str(app.screen.query_one(Static).content)
        bound = {key for binding in TurnlogApp.BINDINGS for key in binding.key.split(",")}  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]  # all are of one class
        names = {"slash": "/", "question_mark": "?", "asterisk": "*", "enter": "↵", "escape": "Esc"}
        listed = " ".join(keys for keys, _ in KEYS).split()
        missing = {key for key in bound if names.get(key, key) not in listed} - {"ctrl+f", "question_mark"}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # as above
        assert missing == set()
        assert all(meaning in shown for _, meaning in KEYS)

    drive(store_path, act)


@pytest.mark.parametrize("size", [(80, 24), (40, 10), (200, 60)])
def test_a_row_fills_a_terminal_of_any_size(store_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        listed = app.query_one(SessionList)
        assert listed.render_line(0).cell_length == listed.scrollable_content_region.width
        assert app.query_one(Preview).size.height >= 3

    drive(store_path, act, size=size)


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
def test_rows_can_be_read_in_every_theme(theme: str, store_path: Path) -> None:
    """In a light theme the titles were white on white."""

    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        app.theme = theme
        await settled(pilot, app)
        listed = app.query_one(SessionList)
        for number in (0, 1):
            for segment in listed.render_line(number):
                assert segment.style is not None
                ink, paper = segment.style.color, segment.style.bgcolor or listed.rich_style.bgcolor
                assert ink is not None
                assert paper is not None
                shades = [sum(color.get_truecolor()) / 3 for color in (ink, paper)]
                assert not segment.text.strip() or abs(shades[0] - shades[1]) > 50, segment

    drive(store_path, act)


def test_the_first_picture_has_the_sessions_and_needs_no_textual(store_path: Path) -> None:
    import subprocess
    import sys

    program = """
import sys
from pathlib import Path
from turnlog.store import open_store
from turnlog.tui.first_paint import picture
from turnlog.tui.listing import Filters, Listing
path = Path(sys.argv[1])
with open_store(path) as store:
    page = Listing(store, path).page("", Filters())
    text = picture(page, Filters(), 80, 24)
assert page.rows[0].title[:20] in text, text
assert "sessions" in text
assert "textual" not in sys.modules
assert "rich" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program, str(store_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_text_of_a_log_is_no_markup_and_no_control_sequence(home: Path) -> None:
    from support.made_repository import MadeRepository, Session

    made = MadeRepository(home / "shop", home / ".claude")
    session = Session(made, "[bold]Title[/bold] [@click=app.quit]press[/] \x1b]0;owned\x07")
    session.save()
    sync(home / "store.db", roots=[home / ".claude"])

    async def act(pilot: AppPilot, app: TurnlogApp) -> None:
        assert "[@click=app.quit]press[/]" in text_of(app)
        assert "\x1b" not in text_of(app)
        assert "owned" not in text_of(app)
        assert "[bold]Title" in app.query_one(SessionList).render_line(0).text

    drive(home / "store.db", act)


def test_filters_in_words() -> None:
    assert Filters().words() == ["all agents", "all projects", "any time"]
    assert Filters("codex", "/work/shop", 7, True).words() == ["codex", "shop", "last 7 days", "starred"]
