"""The list of sessions: a row a line, of which only those on the screen are made."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from turnlog.tui.listing import Row, cells

_NEAR_END = 20
"""So many rows before the last one, further rows are loaded."""

_ROLES = ("star", "title", "project", "agent", "age")


class SessionList(ScrollView, can_focus=True):
    """Rows, one of which is current."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"session-list--{role}" for role in (*_ROLES, "current")}

    DEFAULT_CSS = """
    SessionList {
        .session-list--star { color: $warning; }
        .session-list--title { color: $foreground; }
        .session-list--project, .session-list--age { color: $foreground-muted; }
        .session-list--agent { color: $text-accent; }
        .session-list--current { background: $panel-lighten-2; }
        &:focus .session-list--current { background: $primary 60%; text-style: bold; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "First", show=False),
        Binding("end,G", "edge(1)", "Last", show=False),
    ]

    current: reactive[int] = reactive(0)

    class Moved(Message):
        """Another row is current; None: there is no row."""

        def __init__(self, row: Row | None) -> None:
            """Say which."""
            super().__init__()
            self.row = row

    class EndIsNear(Message):
        """Further rows are needed."""

    def __init__(self) -> None:
        """Begin without rows."""
        super().__init__(id="sessions")
        self._rows: list[Row] = []

    @property
    def row(self) -> Row | None:
        """The current row."""
        return self._rows[self.current] if self.current < len(self._rows) else None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def show(self, rows: Iterable[Row], *, keep: bool = False) -> None:
        """Show these rows; with `keep`, the session that was current stays so, if it is among them."""
        before = self.row
        self._rows = list(rows)
        ids = [row.session_id for row in self._rows]
        at = ids.index(before.session_id) if keep and before is not None and before.session_id in ids else 0
        self._measure()
        if at == self.current:
            self.post_message(self.Moved(self.row))
        self.current = at
        self._scroll_to_current()
        self.refresh()

    def append(self, rows: Iterable[Row]) -> None:
        """Show further rows below."""
        self._rows += rows
        self._measure()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """A line of the screen."""
        number = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if number >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        current = self.get_component_rich_style("session-list--current") if number == self.current else Style()
        segments = [
            Segment(cell.text, self.get_component_rich_style(f"session-list--{cell.role}", partial=True) + current)
            for cell in cells(self._rows[number], width, datetime.now(UTC))
        ]
        return Strip(segments).apply_style(self.rich_style) if number != self.current else Strip(segments)

    def watch_current(self) -> None:
        """Show the current row, and say so."""
        self._scroll_to_current()
        self.refresh()
        self.post_message(self.Moved(self.row))
        if self.current >= len(self._rows) - _NEAR_END:
            self.post_message(self.EndIsNear())

    def action_move(self, by: int) -> None:
        """Go so many rows down."""
        self.current = max(0, min(len(self._rows) - 1, self.current + by))

    def action_page(self, direction: int) -> None:
        """Go a screen up or down."""
        self.action_move(direction * max(1, self.size.height - 1))

    def action_edge(self, direction: int) -> None:
        """Go to the first or last row."""
        self.action_move(direction * len(self._rows))

    def on_click(self, event: Click) -> None:
        """Make the row under the pointer current."""
        number = event.y + self.scroll_offset.y
        if number < len(self._rows):
            self.current = number

    def on_resize(self, event: Resize) -> None:
        """Fit the rows to the new width."""
        self._measure()
        self._scroll_to_current()

    def _measure(self) -> None:
        self.virtual_size = Size(max(1, self.size.width - 1), len(self._rows))

    def _scroll_to_current(self) -> None:
        self.scroll_to_region(Region(0, self.current, 1, 1), animate=False, force=True)
