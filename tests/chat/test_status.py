"""The status of a chat: how its newest answer ended, as its keeper recorded it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.chat_script import drain, post
from turnlog.chat import Chat, NativeKeeper, RunRequest
from turnlog.model import TextPart, ToolResult
from turnlog.model.stream import (
    ApprovalRequest,
    Pause,
    RunFinish,
    StepStart,
    StreamEvent,
    TextDelta,
    TextStart,
    ToolInputAvailable,
    ToolOutput,
)
from turnlog.runs.states import session_states
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.session_state import status_of

CALL = (StepStart(), ToolInputAvailable(tool_call_id="c", tool_name="delete", input_text="everything"))
OUTPUT = ToolOutput(tool_call_id="c", result=ToolResult(id="r", content=(TextPart(text="gone"),)))
DENIAL = ToolOutput(tool_call_id="c", result=ToolResult(id="r", status="denied"))
ASK = ApprovalRequest(approval_id="q", tool_call_id="c")
WAIT = Pause(reason="approval")
HALF = (StepStart(), TextStart(id="t"), TextDelta(id="t", delta="Hel"))


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ((*CALL, OUTPUT), "done"),
        ((*CALL, DENIAL), "done"),
        ((), "done"),
        (HALF, "done"),
        ((None,), "failed"),
        ((*HALF, None), "failed"),
        ((*HALF, RunFinish(stop_reason="error")), "failed"),
        ((*CALL, ASK, WAIT), "waiting"),
    ],
)
def test_a_chats_status_is_how_its_answer_ended(
    tmp_path: Path, events: tuple[StreamEvent | None, ...], status: str
) -> None:
    """None in the events raises."""

    async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        for event in events:
            if event is None:
                raise OSError("the model is away")
            yield event
        if not events or not isinstance(events[-1], Pause | RunFinish):
            yield RunFinish(stop_reason="stop")

    async def run(store: Store) -> None:
        keeper = NativeKeeper(store)
        chat = Chat(answer, keeper)
        await drain(await chat.post(post()))
        keeper.close()

    with open_store(tmp_path / "chats.db", create=True) as store:
        asyncio.run(run(store))
        for later in (timedelta(0), timedelta(hours=1)):
            state = session_states(store, ["turnlog:chat"], datetime.now(UTC) + later)["turnlog:chat"]
            assert status_of(state) == status


def test_a_chat_that_is_answered_again_is_not_as_its_last_answer_ended(tmp_path: Path) -> None:
    tries: list[RunRequest] = []

    async def answer(request: RunRequest) -> AsyncGenerator[str, None]:
        tries.append(request)
        if len(tries) == 1:
            raise OSError("the model is away")
        await asyncio.Event().wait()
        yield ""

    async def run(store: Store) -> list[str]:
        keeper = NativeKeeper(store)
        chat = Chat(answer, keeper)
        found: list[str] = []
        for _ in range(2):
            stream = await chat.post(post())
            if not found:
                await drain(stream)
            while len(tries) < len(found) + 1:
                await asyncio.sleep(0)
            found.append(status_of(session_states(store, ["turnlog:chat"])["turnlog:chat"]))
        await chat.close()
        found.append(status_of(session_states(store, ["turnlog:chat"])["turnlog:chat"]))
        keeper.close()
        return found

    with open_store(tmp_path / "chats.db", create=True) as store:
        assert asyncio.run(run(store)) == ["failed", "running", "stopped"]
