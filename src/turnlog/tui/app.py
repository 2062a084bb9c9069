"""The application: the list of sessions, the search above it, and the text of the current one.

Everything that reads the store runs on threads; what a newer question has overtaken is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.timer import Timer
from textual.widgets import Input, Static

from turnlog.agents import agents
from turnlog.errors import TurnlogError
from turnlog.plain_text import plain
from turnlog.runs.resuming import plan_resumption, resume_line
from turnlog.store.base import Store
from turnlog.tui import preview
from turnlog.tui.first_paint import status_line
from turnlog.tui.listing import DAYS, Filters, Listing, ListPage, Row
from turnlog.tui.preview import Preview
from turnlog.tui.session_list import SessionList

_TYPING_SECONDS: Final = 0.06
"""A pause in typing after which the search begins."""

_MOVING_SECONDS: Final = 0.05
"""A pause in moving after which the session is read."""

_LOOKING_SECONDS: Final = 2.0
"""Time between two looks whether something has changed."""

_KEYS: Final = "? keys  / search  ↵ resume  h hand over  o page  a p t s filters  q quit"


class AppContext(NamedTuple):
    """What the application works with."""

    store: Store
    listing: Listing
    refresh: Callable[[], None]
    """Reads what is new in the agents' logs."""
    open_page: Callable[[str], str]
    """Opens a session in the browser; returns what to say. Raises TurnlogError."""
    first_page: ListPage | None = None
    """What is painted already."""
    filters: Filters = Filters()


class TurnlogApp(App[list[str]]):
    """Answers the arguments of a command to run afterwards, such as `resume` with a session; None for none."""

    TITLE = "turnlog"
    ENABLE_COMMAND_PALETTE = False
    # Keys may have been typed already: they are meant for the list.
    AUTO_FOCUS = "SessionList"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]

    CSS = """
    Screen { layout: vertical; }
    #search { height: 1; border: none; padding: 0; background: $surface; &:focus { border: none; } }
    #status { height: 1; color: $text-muted; }
    #main { height: 1fr; }
    .-narrow #main { layout: vertical; }
    .-wide #main { layout: horizontal; }
    .-narrow #sessions { height: 2fr; }
    .-narrow #preview { height: 3fr; border-top: solid $panel-lighten-2; }
    .-wide #sessions { width: 5fr; height: 1fr; }
    .-wide #preview { width: 6fr; height: 1fr; border-left: solid $panel-lighten-2; padding: 0 1; }
    #preview { background: $background; scrollbar-size-vertical: 1; }
    #preview:focus { border-top: solid $primary; }
    .-wide #preview:focus { border-top: none; border-left: solid $primary; }
    #sessions { background: $background; scrollbar-size-vertical: 1; }
    #keys { height: 1; color: $text-muted; background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash,ctrl+f", "search", "Search", show=False),
        Binding("escape", "leave", "Back", show=False),
        Binding("enter", "resume", "Resume", show=False),
        Binding("h", "hand_over", "Hand over", show=False),
        Binding("o", "open_page", "Page", show=False),
        Binding("y", "copy", "Copy", show=False),
        Binding("b", "beginning", "Beginning", show=False),
        Binding("e", "end", "End", show=False),
        Binding("a", "filter('agent')", "Agent", show=False),
        Binding("p", "filter('project')", "Project", show=False),
        Binding("t", "filter('days')", "Time", show=False),
        Binding("s", "filter('starred')", "Starred", show=False),
        Binding("asterisk", "star", "Star", show=False),
        Binding("r", "read_new", "Read", show=False),
        Binding("question_mark", "help", "Keys", show=False),
        Binding("q", "quit", "Quit", show=False),
    ]

    def __init__(self, context: AppContext) -> None:
        """Show the sessions of this context."""
        super().__init__()
        self._given = context
        self._narrowing = context.filters
        self._page = context.first_page or ListPage(())
        self._query = ""
        self._last_change = 0
        self._typing: Timer | None = None
        self._moving: Timer | None = None
        # Timers and threads may still call while the application ends, when no query finds a widget.
        self._search = Input(placeholder="/ search", id="search", compact=True, select_on_focus=False)
        self._status = Static("", id="status", markup=False)
        self._list = SessionList()
        self._preview = Preview()

    def compose(self) -> ComposeResult:
        """The search, the filters, the list beside or above the session, the keys."""
        yield self._search
        yield self._status
        with Container(id="main"):
            yield self._list
            yield self._preview
        yield Static(_KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        """Show what is there, then look for what is new."""
        if self._given.first_page is None:
            self._load()
        else:
            self._show_page(self._given.first_page, "", self._narrowing)
        with suppress(TurnlogError):
            self._last_change = self._given.store.last_change()
        self.action_read_new(quiet=True)
        self.set_interval(_LOOKING_SECONDS, self._look)

    # -- the list

    @work(thread=True, exclusive=True, group="list")
    def _load(self, *, keep: bool = False) -> None:
        """Read the first page of the query and filters; with `keep` the current session stays current."""
        query, filters = self._query, self._narrowing
        limit = max(preview.MESSAGES, self._list.count) if keep else None
        try:
            listing = self._given.listing
            page = listing.page(query, filters) if limit is None else listing.page(query, filters, None, limit)
        except (TurnlogError, ValueError) as error:
            self.call_from_thread(self._fail, str(error))
            return
        self.call_from_thread(self._show_page, page, query, filters, keep=keep)

    def _show_page(self, page: ListPage, query: str, filters: Filters, *, keep: bool = False) -> None:
        if (query, filters) != (self._query, self._narrowing):
            return
        self._page = page
        self._list.show(page.rows, keep=keep)
        self._show_status()

    def _show_status(self) -> None:
        text = status_line(self._page, self._narrowing)
        if not self._page.rows:
            text = f"nothing found · {text}"
            if self._page.suggestion is not None:
                text = f"did you mean {plain(self._page.suggestion)}? · {text}"
        self._status.update(Text(text, no_wrap=True, overflow="ellipsis"))

    @on(SessionList.EndIsNear)
    def _read_on(self) -> None:
        if self._page.next_cursor is not None:
            self._load_more(self._page.next_cursor, self._query, self._narrowing)

    @work(thread=True, exclusive=True, group="more")
    def _load_more(self, cursor: str, query: str, filters: Filters) -> None:
        with suppress(TurnlogError, ValueError):
            page = self._given.listing.page(query, filters, cursor)
            self.call_from_thread(self._show_more, page, cursor, query, filters)

    def _show_more(self, page: ListPage, cursor: str, query: str, filters: Filters) -> None:
        if (cursor, query, filters) == (self._page.next_cursor, self._query, self._narrowing):
            self._page = self._page._replace(next_cursor=page.next_cursor)
            self._list.append(page.rows)

    def _look(self) -> None:
        """Show what a server or this program has read since."""
        with suppress(TurnlogError):
            last = self._given.store.last_change()
            if last != self._last_change:
                self._last_change = last
                self._load(keep=True)

    @work(thread=True, exclusive=True, group="read")
    def action_read_new(self, *, quiet: bool = False) -> None:
        """Read what is new in the agents' logs."""
        try:
            self._given.refresh()
        except TurnlogError as error:
            self.call_from_thread(self._fail, str(error))
        else:
            self.call_from_thread(self._look)
            if not quiet:
                self.call_from_thread(self.notify, "Up to date.", markup=False)

    # -- search and filters

    @on(Input.Changed, "#search")
    def _typed(self, event: Input.Changed) -> None:
        self._query = event.value
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_TYPING_SECONDS, self._load)

    @on(Input.Submitted, "#search")
    def _leave_search(self) -> None:
        self._list.focus()

    def action_search(self) -> None:
        """Go to the search field."""
        self._search.focus()

    def action_leave(self) -> None:
        """Leave the search field or the text; on the list, show all sessions again."""
        if self._list.has_focus:
            self._search.value = ""
            if self._narrowing != Filters():
                self._narrowing = Filters()
                self._load()
        else:
            self._list.focus()

    def action_filter(self, name: str) -> None:
        """Change a filter to its next value."""
        row = self._list.row
        filters = self._narrowing
        if name == "starred":
            filters = filters._replace(starred=not filters.starred)
        elif name == "days":
            filters = filters._replace(days=_after(DAYS, filters.days))
        elif name == "agent":
            stored = [summary.agent for summary in self._given.store.agents()]
            filters = filters._replace(agent=_after((None, *stored), filters.agent))
        elif filters.project is not None:
            filters = filters._replace(project=None)
        elif row is not None:
            project = self._given.store.session(row.session_id).project
            filters = filters._replace(project=None if project is None else project.path)
        self._narrowing = filters
        self._load()

    # -- the session

    @on(SessionList.Moved)
    def _moved(self) -> None:
        if self._moving is not None:
            self._moving.stop()
        self._moving = self.set_timer(_MOVING_SECONDS, self._show_session)

    def _show_session(self) -> None:
        row = self._list.row
        if row is None:
            self._preview.show("", [], [])
        else:
            self._read_session(row, last=False)

    @work(thread=True, exclusive=True, group="session")
    def _read_session(self, row: Row, *, last: bool) -> None:
        try:
            session = self._given.store.session(row.session_id)
            around = None if last else row.position
            messages = preview.read(self._given.store, row.session_id, around=around, last=last)
            head = preview.header(session, resume_line(session))
        except TurnlogError as error:
            self.call_from_thread(self._fail, str(error))
            return
        if around is not None and messages:
            # The message before the hit says what it answers.
            at = next((n for n, placed in enumerate(messages) if placed.membership.position >= around), 0)
            messages = messages[max(0, at - 1) :]
            head.append(Text("… begins at the hit; b shows the beginning", "dim"))
        elif last and len(messages) == preview.MESSAGES:
            head.append(Text("… the end; b shows the beginning", "dim"))
        self.call_from_thread(self._show_messages, row, head, messages, last)

    def _show_messages(self, row: Row, head: list[Text], messages: list[preview.PlacedMessage], last: bool) -> None:
        current = self._list.row
        if current is None or current.session_id != row.session_id:
            return
        self._preview.show(row.session_id, head, messages, _marked_words(row), None if last else row.position)
        if last:
            self._preview.last = None
            self._preview.scroll_end(animate=False)

    def on_mouse_scroll_down(self) -> None:
        """Read on."""
        self._continue_session()

    def on_key(self) -> None:
        """Read on when the end of the text is near."""
        self.call_after_refresh(self._continue_session)

    def _continue_session(self) -> None:
        text = self._preview
        if text.session_id and text.last is not None and text.scroll_offset.y + 2 * text.size.height > len(text.lines):
            after, text.last = text.last, None
            self._read_more(text.session_id, after)

    @work(thread=True, exclusive=True, group="session")
    def _read_more(self, session_id: str, after: int) -> None:
        with suppress(TurnlogError):
            messages = preview.read(self._given.store, session_id, after=after)
            self.call_from_thread(self._append_messages, session_id, messages)

    def _append_messages(self, session_id: str, messages: list[preview.PlacedMessage]) -> None:
        row = self._list.row
        if row is not None and row.session_id == session_id == self._preview.session_id:
            self._preview.append(messages, _marked_words(row))

    def action_beginning(self) -> None:
        """Show the session from its beginning."""
        row = self._list.row
        if row is not None:
            self._read_session(row._replace(hit=None), last=False)

    def action_end(self) -> None:
        """Show the end of the session."""
        row = self._list.row
        if row is not None:
            self._read_session(row, last=True)

    # -- what to do with it

    def action_resume(self) -> None:
        """Leave, and go on with the session in its agent."""
        row = self._list.row
        if row is None:
            return
        try:
            planned = plan_resumption(self._given.store, self._given.store.session(row.session_id))
        except TurnlogError as error:
            self._fail(str(error))
            return
        if planned.problems:
            self._fail(planned.problems[0])
        else:
            self.exit(["resume", row.session_id])

    def action_hand_over(self) -> None:
        """Ask which agent the session is to be handed to."""
        from turnlog.handoff import targets
        from turnlog.tui.screens import HandoverScreen

        row = self._list.row
        if row is None:
            return
        choices = [target for target in targets() if target.name != row.agent]

        def hand_over(target: str | None) -> None:
            if target is not None:
                self.exit(["resume", row.session_id, "--in", target])

        self.push_screen(HandoverScreen(self._given.store, row.session_id, choices), hand_over)

    @work(thread=True, exclusive=True, group="page")
    def action_open_page(self) -> None:
        """Open the session in the browser."""
        row = self._list.row
        if row is None:
            return
        try:
            outcome = self._given.open_page(row.session_id)
        except TurnlogError as error:
            self.call_from_thread(self._fail, str(error))
        else:
            self.call_from_thread(self.notify, outcome, markup=False)

    def action_copy(self) -> None:
        """Copy the command that goes on with the session, through the terminal."""
        row = self._list.row
        line = None if row is None else resume_line(self._given.store.session(row.session_id))
        if line is None:
            self._fail("its agent has no command that goes on with it")
        else:
            self.copy_to_clipboard(line)
            self.notify(f"Copied: {plain(line)}", markup=False)

    def action_star(self) -> None:
        """Star the session, or take the star away."""
        row = self._list.row
        if row is None:
            return
        try:
            self._given.store.annotate(row.session_id, starred=not row.starred)
        except TurnlogError as error:
            self._fail(str(error))
        else:
            self._load(keep=True)

    def action_help(self) -> None:
        """Show the keys."""
        # What only a key needs is imported with it: the first picture of Textual waits for every import.
        from turnlog.tui.screens import HelpScreen

        self.push_screen(HelpScreen())

    def _fail(self, reason: str) -> None:
        self.notify(plain(reason), severity="error", markup=False)


def _after(values: Sequence[str | int | None], current: str | int | None) -> str | int | None:
    """The value that follows in a circle."""
    at = values.index(current) if current in values else -1
    return values[(at + 1) % len(values)]


def _marked_words(row: Row) -> list[str]:
    hit = row.hit
    return [] if hit is None else sorted({hit.snippet[start:end] for start, end in hit.marks})


def run(context: AppContext) -> list[str] | None:
    """Show the application until the user leaves it; the arguments of what to run then, if anything."""
    # Agents may live in packages of their own: finding them takes a moment, before the first key needs it.
    agents()
    return TurnlogApp(context).run()
