"""What is between a player and its clients: sockets that break, requests that are none, clients that try again."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.request import urlopen

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors
from google.genai import types as google

from support.cassette_histories import history
from support.provider_messages import assistant, call, result, user
from turnlog.cassette import Cassette, Player, play, record

PROMPT = "Fix the bug"
REPLY = "On it: ünï 🤔."


def cassette(reply: str = REPLY) -> Cassette:
    answers = [assistant(reply, call("c1", result("out")), id="a1"), assistant("Done.", id="a2")]
    return record([history([user(PROMPT), *answers])]).cassette


# -- the asynchronous clients of the SDKs, with the retries that they have by default


async def _anthropic(url: str, text: str, stream: bool) -> str:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="-") as client:
        options: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
        if not stream:
            return _anthropic_text(await client.messages.create(**options))
        async with client.messages.stream(**options) as events:
            return _anthropic_text(await events.get_final_message())


def _anthropic_text(message: Any) -> str:
    return "".join([block.text for block in message.content if block.type == "text"])


async def _chat(url: str, text: str, stream: bool) -> str:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="-") as client:
        options: Any = {"model": "m", "messages": [{"role": "user", "content": text}]}
        made: Any = client.chat.completions
        if not stream:
            return (await made.create(**options)).choices[0].message.content
        chunks = [chunk async for chunk in await made.create(**options, stream=True)]
        return "".join([choice.delta.content or "" for chunk in chunks for choice in chunk.choices])


async def _responses(url: str, text: str, stream: bool) -> str:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="-") as client:
        made: Any = client.responses
        if not stream:
            return (await made.create(model="m", input=text)).output_text
        events = [event async for event in await made.create(model="m", input=text, stream=True)]
        return events[-1].response.output_text


async def _gemini(url: str, text: str, stream: bool) -> str:
    async with genai.Client(api_key="-", http_options=google.HttpOptions(base_url=url)).aio as client:
        models: Any = client.models
        options: Any = {"model": "m", "contents": text}
        answers: list[Any] = (
            [answer async for answer in await models.generate_content_stream(**options)]
            if stream
            else [await models.generate_content(**options)]
        )
    return "".join([_gemini_text(answer.candidates[0].content.parts or []) for answer in answers])


def _gemini_text(parts: list[Any]) -> str:
    return "".join([part.text for part in parts if part.text])


Ask = Callable[[str, str, bool], Awaitable[str]]
CLIENTS: dict[str, Ask] = {"anthropic": _anthropic, "openai-chat": _chat, "responses": _responses, "gemini": _gemini}
REFUSALS = (anthropic.BadRequestError, openai.BadRequestError, errors.ClientError)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", CLIENTS)
def test_asynchronous_clients_are_answered_and_try_no_refusal_again(name: str, stream: bool) -> None:
    """R-S42."""

    async def ask() -> None:
        with play(cassette()) as player:
            assert await CLIENTS[name](player.url, PROMPT, stream) == REPLY
            with pytest.raises(REFUSALS, match="is not the recorded one"):
                await CLIENTS[name](player.url, "Something else", stream)
            assert len(player.requests) == 2
            assert "+user: Something else" in player.failures[0].splitlines()
            assert "1 of 2 answers" in player.unplayed()[0]

    asyncio.run(ask())


@pytest.mark.parametrize("name", CLIENTS)
def test_parallel_questions_get_their_own_answers(name: str) -> None:
    """R-S42."""
    conversations = [history([user(f"question {n}"), assistant(f"answer {n}", id=f"a{n}")]) for n in range(8)]

    async def ask() -> list[str]:
        with play(record(conversations).cassette) as player:
            answers = [CLIENTS[name](player.url, f"question {n}", n % 2 == 0) for n in range(8)]
            return list(await asyncio.gather(*answers))

    assert asyncio.run(ask()) == [f"answer {n}" for n in range(8)]


# -- sockets


LONG = "x" * 1_000_000
"""An answer that does not fit into what the kernel keeps for a connection when it is streamed: some 6 MB."""


def connect(player: Player) -> socket.socket:
    """A connection that takes little before it is read from."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(10)
    connection.connect(("127.0.0.1", int(player.url.rpartition(":")[2])))
    return connection


def request(body: Any) -> bytes:
    data = json.dumps(body).encode()
    return b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)


def _streamed_text(player: Player, body: Any) -> str:
    """The whole answer to a request, without a client of the SDK, which takes seconds for so many deltas."""
    with urlopen(f"{player.url}/v1/messages", json.dumps(body).encode(), timeout=20) as answer:
        events = [json.loads(line.removeprefix(b"data: ")) for line in answer if line.startswith(b"data: ")]
    return "".join([event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta"])


def wait_until(holds: Callable[[], bool]) -> None:
    """A server notices a broken connection when it writes on."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_answer_that_broke_off_is_given_again(capfd: pytest.CaptureFixture[str]) -> None:
    """R-S42: a client whose connection broke sends the same request again."""
    body = {"messages": [{"role": "user", "content": PROMPT}], "stream": True}
    with play(cassette(LONG)) as player:
        for _ in range(3):
            with connect(player) as broken:
                broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                broken.sendall(request(body))
                assert broken.recv(10)
            wait_until(lambda: "2 of 2 answers" in player.unplayed()[0])
        assert _streamed_text(player, body) == LONG
        assert player.failures == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n\xff\xfe",
        b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000,
    ],
)
def test_what_is_no_request_is_reported_to_its_sender(sent: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with play(cassette()) as player:
        with connect(player) as client:
            client.sendall(sent)
            with client.makefile("rb") as answer:
                received = answer.read()
        assert received.startswith(b"HTTP/1.1 400 ")
        assert b"the request is not JSON" in received
        assert player.requests == []
    assert capfd.readouterr().err == ""
