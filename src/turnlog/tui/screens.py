"""What opens above the list: the keys, and the choice of an agent to hand a session to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from turnlog.errors import TurnlogError
from turnlog.handoff import Target, plan
from turnlog.plain_text import one_line, plain
from turnlog.store.base import Store

KEYS: Final = (
    ("↑ ↓  j k  PgUp PgDn", "another session"),
    ("g G", "the first, the last"),
    ("/", "search everything as you type; also title: file:"),
    ("↵ in the search", "back to the list"),
    ("Esc", "leave the search; once more: show all again"),
    ("↵", "go on with the session in its agent"),
    ("h", "hand it over to another agent"),
    ("o", "open it in the browser"),
    ("y", "copy the command that goes on with it"),
    ("Tab", "into the text and back; there the same keys scroll"),
    ("b e", "its beginning, its end"),
    ("a", "another agent only, or all"),
    ("p", "the project of this session only, or all"),
    ("t", "last day, 7 days, 30 days, any time"),
    ("s", "starred only, or all"),
    ("*", "star the session"),
    ("r", "read what is new"),
    ("q", "leave"),
)
"""Every key and what it does."""

_NONE_INSTALLED: Final = "None of these agents is installed here. Esc goes back."


class HelpScreen(ModalScreen[None]):
    """The keys."""

    AUTO_FOCUS = "*"

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", "Back", show=False)]

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        width: 78; max-width: 100%; height: auto; max-height: 100%; padding: 0 2; border: round $primary;
        background: $surface; border-title-color: $text;
    }
    """

    def compose(self) -> ComposeResult:
        """The table of keys."""
        lines = [Text.assemble((f"{keys:<22}", "bold"), meaning) for keys, meaning in KEYS]
        with VerticalScroll() as box:
            box.border_title = "Keys"
            yield Static(Text("\n").join(lines), markup=False)


class HandoverScreen(ModalScreen[str | None]):
    """The agents that a session can be handed to, and what would not be carried. Answers the agent's name."""

    AUTO_FOCUS = "OptionList"

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss(None)", "Back", show=False)]

    DEFAULT_CSS = """
    HandoverScreen { align: center middle; }
    HandoverScreen > VerticalScroll {
        width: 72; max-width: 100%; height: auto; max-height: 100%; padding: 0 1; border: round $primary;
        background: $surface; border-title-color: $text;
    }
    HandoverScreen OptionList {
        height: auto; max-height: 8; padding: 0; border: none; background: $surface; &:focus { border: none; }
    }
    HandoverScreen Static { margin: 1 0 0 0; }
    """

    def __init__(self, store: Store, session_id: str, choices: Sequence[Target]) -> None:
        """Offer these agents."""
        super().__init__()
        self._store = store
        self._session_id = session_id
        self._choices = choices

    def compose(self) -> ComposeResult:
        """The agents above what would be lost."""
        with VerticalScroll() as box:
            box.border_title = "Hand over to"
            yield OptionList(*[_option(each) for each in self._choices], markup=False)
            # An agent that is not installed cannot be chosen: nothing is reported before one is.
            are_none = not any(each.is_installed for each in self._choices)
            yield Static(_NONE_INSTALLED if are_none else "", id="report", markup=False)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Say what would become of the session."""
        self._report(self._choices[event.option_index].name)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer this agent."""
        self.dismiss(self._choices[event.option_index].name)

    @work(thread=True, exclusive=True)
    def _report(self, target: str) -> None:
        """Plan the hand-over, which writes nothing: a long session takes a second."""
        try:
            planned = plan(self._store, self._session_id, target)
        except TurnlogError as error:
            text = Text(plain(str(error)), "red")
        else:
            losses = [f"• {each.sentence}" for each in planned.summary] or ["• nothing is lost"]
            notes = [f"• {plain(note)}" for note in planned.notes]
            size = f"{planned.turns} turns, {planned.tool_calls} tool calls, about {planned.tokens:,} tokens"
            text = Text("\n".join([size, *losses, *notes, "", "↵ hands it over and starts the agent. Esc goes back."]))
        self.call_later(self._show, text)

    def _show(self, text: Text) -> None:
        if self.is_mounted:
            self.query_one("#report", Static).update(text)


def _option(target: Target) -> Option:
    name = one_line(target.display_name)
    return Option(name if target.is_installed else f"{name} (not installed)", disabled=not target.is_installed)
