"""The last turn of a stored session that still grows, as a chunk stream for `useChat({resume: true})`.

A page loads the stored messages, resumes, and sees the answer grow with the agent's log. A stream cannot push a new
message of the user: it ends with the turn, and the page loads the session again and resumes into the next turn. The
session's state says whether a turn has ended (`store.session_state`); if its records do not say, silence decides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from turnlog.aisdk.streaming import stream_events
from turnlog.aisdk.versions import Version
from turnlog.aisdk.view import ui_message_id
from turnlog.aisdk.writer import ChunkWriter
from turnlog.arguments import checked
from turnlog.chat.loading import EVERYTHING, SHOWN_FATES
from turnlog.chat.message_differ import MessageDiffer
from turnlog.chat.numbers import check_numbers
from turnlog.model import Message, ToolCallPart
from turnlog.model.stream import Abort, Pause, RunFinish, RunStart, StreamEvent
from turnlog.runs.states import session_states
from turnlog.store.base import Store
from turnlog.store.session_state import SessionState
from turnlog.store.values import PlacedMessage

LONGEST_SILENCE: Final = timedelta(minutes=15)
"""An agent that wrote nothing for so long in the middle of a turn is gone: tools rarely run longer without output."""

LONGEST_PAUSE: Final = timedelta(seconds=10)
"""Some agents do not record the end of a turn. A text without a stop reason counts as the last one of its turn if
nothing followed for so long."""

POLL_SECONDS: Final = 0.5
"""How often the store is queried if nothing announces changes."""

Wait: TypeAlias = Callable[[float], Awaitable[bool]]
"""Waits until the session may have changed, at most so many seconds; False ends the stream."""


class Turn(NamedTuple):
    """The last turn of a session as it is now."""

    answers: Sequence[PlacedMessage]
    """The assistant's messages since the last prompt, without those that are complete and were sent."""
    end: StreamEvent | None
    """How it ended; None while it goes on."""


class Tail:
    """The last turn of a session, followed; made by `open_tail`."""

    @checked
    def __init__(self, store: Store, session_id: str) -> None:
        """Find the last prompt of the session."""
        self._store = store
        self._session_id = session_id
        updated = store.session(session_id).updated_at
        self.silence = timedelta.max if updated is None else max(datetime.now(UTC) - updated, timedelta())
        """How long the session had not changed when it was opened."""
        places = store.places(session_id, fates=SHOWN_FATES, limit=EVERYTHING)
        self._settled = max((place.position for place in places if place.role == "user"), default=-1)
        """Messages up to this position are complete, and were sent."""

    @checked
    def stream(
        self, *, version: Version = 7, wait: Wait | None = None, keep_alive: float | None = 15.0
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a stream of the turn, from its start to its end. Call it once.

        Args:
            version: The page's AI SDK.
            wait: Waits for a change; by default the store is queried every `POLL_SECONDS`.
            keep_alive: Seconds of silence after which a comment is sent; None sends none.

        Raises ValueError for a `keep_alive` that is not above 0.
        """
        check_numbers("Tail", keep_alive=keep_alive)
        events = self._follow(_sleep if wait is None else wait)
        return stream_events(events, ChunkWriter(version), keep_alive=keep_alive)

    async def _follow(self, wait: Wait) -> AsyncGenerator[StreamEvent, None]:
        differ, begun, changed = MessageDiffer(_may_grow), False, time.monotonic() - self.silence.total_seconds()
        while True:
            turn = await asyncio.to_thread(self.read, timedelta(seconds=time.monotonic() - changed))
            if turn.answers and not begun:
                begun, first = True, turn.answers[0].message.id
                yield RunStart(message_id=ui_message_id(first) or first)
            for answer in turn.answers:
                for event in differ.diff(answer.message):
                    changed = time.monotonic()
                    yield event
            self._settle(turn.answers)
            if turn.end is not None:
                for event in differ.end_step():
                    yield event
                yield turn.end
                return
            if not await wait(POLL_SECONDS):
                return

    @checked
    def read(self, silence: timedelta) -> Turn:
        """The messages that may have changed since the last call, and whether the turn has ended."""
        # The state first: the messages that it is based on are then among those read after it.
        state = session_states(self._store, [self._session_id])[self._session_id]
        placed = self._store.messages(self._session_id, after=self._settled, fates=SHOWN_FATES)
        following = next((index for index, each in enumerate(placed) if each.message.role == "user"), None)
        answers = [each for each in placed[:following] if each.message.role == "assistant"]
        return Turn(answers, _end(answers, state, silence, followed=following is not None))

    def _settle(self, answers: Sequence[PlacedMessage]) -> None:
        for answer in answers[:-1]:
            if _open_calls(answer.message):
                return
            self._settled = answer.membership.position


def _end(
    answers: Sequence[PlacedMessage], state: SessionState, silence: timedelta, *, followed: bool
) -> StreamEvent | None:
    """How the turn ended; None while it goes on."""
    last = answers[-1].message if answers else None
    finish = RunFinish(stop_reason=None if last is None else last.stop_reason)
    if followed:
        return finish
    if state.evidence == "approval":
        return Pause(reason="approval")
    if state.state == "done":
        is_pausing = state.evidence == "answer" and state.detail is None and silence <= LONGEST_PAUSE
        return None if is_pausing else Abort() if state.evidence == "interrupt" or state.detail == "aborted" else finish
    if state.state == "killed":
        return Abort(reason="killed")
    if silence > LONGEST_SILENCE:
        return Abort(reason="silent") if last is None or _open_calls(last) else finish
    return None


def _open_calls(message: Message) -> list[ToolCallPart]:
    calls = [part for part in message.parts if isinstance(part, ToolCallPart) and not part.provider_executed]
    return [call for call in calls if all(result.preliminary for result in call.results)]


def _may_grow(message: Message, index: int) -> bool:
    """Only the last part of a message that has not ended: a log does not say when a part is complete."""
    return index == len(message.parts) - 1 and message.stop_reason is None


@checked
async def open_tail(store: Store, session_id: str) -> Tail | None:
    """Follow a session's last turn; None (HTTP 204) if it has ended.

    Raises:
        NotFoundError: There is no such session.
    """
    tail = await asyncio.to_thread(Tail, store, session_id)
    turn = await asyncio.to_thread(tail.read, tail.silence)
    return tail if turn.end is None else None


async def _sleep(seconds: float) -> bool:
    await asyncio.sleep(seconds)
    return True
