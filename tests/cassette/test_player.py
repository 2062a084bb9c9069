"""Recorded conversations are played to the official SDKs, whole and as streams; leaving them is reported (R-S42)."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import anthropic
import google.genai.errors
import openai
import pytest

from support.cassette_agents import AGENTS, Agent, Answer, drive, is_plain
from support.cassette_histories import CONVERSATION, history, recorded, recorded_logs
from support.provider_messages import assistant, call, developer, image, result, user
from turnlog.cassette import Player, play
from turnlog.cassette.recording import record
from turnlog.cassette.tape import Cassette, Track, requests_of
from turnlog.errors import FormatError
from turnlog.model import Session

REFUSALS = (anthropic.BadRequestError, openai.BadRequestError, google.genai.errors.ClientError)
ANSWERS: list[Answer] = [
    (
        "I look at it, and at all that stands around it.",
        [("Bash", {"command": "ls"}), ("Bash", {"command": "cat x", "lines": [1, 2.5, None]})],
    ),
    ("Found it.", [("Bash", {"command": "sleep"})]),
    ("Done: ünï.", []),
]


@pytest.fixture
def player() -> Iterator[Player]:
    with play(recorded().cassette) as playing:
        yield playing


Connect = Callable[..., Agent]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """`connect(name, player)` gives an agent, whose connections end with the test."""
    agents: list[Agent] = []

    def make(name: str, player: Player, **options: Any) -> Agent:
        agents.append(AGENTS[name](player.url, **options))
        return agents[-1]

    yield make
    for agent in agents:
        agent.client.close()


def only_track(cassette: Cassette) -> Track:
    (track,) = cassette.tracks
    return track


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", AGENTS)
def test_every_sdk_gets_the_recorded_answers(connect: Connect, name: str, stream: bool) -> None:
    cassette = recorded().cassette
    with play(cassette) as player:
        assert drive(connect(name, player), only_track(cassette), stream=stream) == ANSWERS
        assert (player.failures, player.unplayed()) == ([], [])
        assert len(player.requests) == 3


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_request_may_go_on_from_a_response(connect: Connect, stream: bool) -> None:
    cassette = recorded().cassette
    with play(cassette) as player:
        assert drive(connect("responses", player, goes_on=True), only_track(cassette), stream=stream) == ANSWERS
        assert len(player.requests[2]["input"]) == 2
        stranger: Any = connect("responses", player, goes_on=True)
        stranger.last = "resp_elsewhere"
        with pytest.raises(openai.BadRequestError, match="goes on from the response resp_elsewhere"):
            stranger.ask(["Go on"], [], stream=False)


@pytest.mark.parametrize("name", AGENTS)
def test_recorded_logs_of_every_agent_are_played(connect: Connect, name: str) -> None:
    """From each agent a conversation with calls, and its subagents beside it."""
    longest: dict[str, Cassette] = {}
    for path, made in recorded_logs().items():
        agent = path.partition("/")[0]
        tracks = [track for track in made.cassette.tracks if all(is_plain(asks) for asks, _ in own_requests(track))]
        if len(tracks) == len(made.cassette.tracks) and steps(made.cassette) > steps(longest.get(agent)):
            longest[agent] = made.cassette
    assert set(longest) >= {"claude_code", "codex", "gemini_cli", "klaude"}
    for cassette in longest.values():
        with play(cassette) as player:
            for track in cassette.tracks:
                drive(connect(name, player), track, stream=True)
            assert (player.failures, player.unplayed()) == ([], [])


def own_requests(track: Track) -> Iterator[tuple[Any, Any]]:
    return ((exchange.asks, exchange) for _, exchange in requests_of(track))


def steps(cassette: Cassette | None) -> int:
    return sum(len(track.exchanges) for track in cassette.tracks) if cassette else 0


def ask_twice(agent: Agent, first: str, answers: list[str], *more: str) -> None:
    agent.ask([first], [], stream=False)
    agent.ask(more, list(zip(["c1", "c2"], answers, strict=True)), stream=False)


@pytest.mark.parametrize("name", AGENTS)
def test_who_leaves_the_recording_sees_where(connect: Connect, name: str, player: Player) -> None:
    agent = connect(name, player)
    with pytest.raises(REFUSALS) as caught:
        ask_twice(agent, "Fix the bug", ["a.py\nc.py", "boom"])
    changed = (
        "cassette in memory: request 2 is not the recorded one (exchange 2 of 3 of plain:3f2a)\n"
        "--- recorded\n+++ requested\n"
        ' call of Bash: {"command": "cat x", "lines": [1, 2.5, null]}\n'
        " result of Bash: a.py\n-    b.py\n+    c.py\n result of Bash: boom"
    )
    assert player.failures == [changed]
    assert json.dumps(changed)[1:-1].replace('\\"', '"') in repr(caught.value).replace('\\"', '"').replace(
        "\\\\n", "\\n"
    )
    assert player.unplayed() == ["cassette in memory: 2 of 3 answers of plain:3f2a were not asked for"]


@pytest.mark.parametrize("name", AGENTS)
def test_white_space_and_additions_of_the_agent_are_not_compared(connect: Connect, name: str, player: Player) -> None:
    agent = connect(name, player)
    ask_twice(agent, "  Fix\n\nthe   bug\n", ["a.py b.py\n", "  boom"])
    assert player.failures == []
    for texts in (["Fix the bug", "It is Monday."], ["It is Monday.", "Fix the bug"]):
        with play(recorded().cassette) as another:
            connect(name, another).ask(texts, [], stream=False)
            assert another.failures == []


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (["Fix it", "a.py b.py", "boom"], "-user: Fix the bug"),
        (["Fix the bug now", "a.py b.py", "boom"], "+user: Fix the bug now"),
        (["Fix the bug", "a.py b.py", "boom", "hurry"], "+user: hurry"),
        (["Fix the bug", "a.py b.py", "bang"], "+result of Bash: bang"),
        (["Fix the bug", "boom", "a.py b.py"], "-result of Bash: a.py"),
    ],
)
def test_texts_and_results_are_compared(connect: Connect, changed: list[str], line: str, player: Player) -> None:
    with pytest.raises(anthropic.BadRequestError):
        ask_twice(connect("anthropic", player), changed[0], changed[1:3], *changed[3:])
    assert line in player.failures[0].splitlines()


def test_calls_are_compared_by_name_and_arguments(connect: Connect, player: Player) -> None:
    agent: Any = connect("anthropic", player)
    agent.ask(["Fix the bug"], [], stream=False)
    agent.messages[-1]["content"][-1]["input"] = {"command": "cat y"}
    with pytest.raises(anthropic.BadRequestError):
        agent.ask([], [("c1", "a.py b.py"), ("c2", "boom")], stream=False)
    assert '+call of Bash: {"command": "cat y"}' in player.failures[0]


def test_what_is_ignored_may_differ(connect: Connect) -> None:
    cassette = recorded(user("look into /tmp/pytest-1/x"), assistant("ok")).cassette
    with play(cassette, ignore=[r"/tmp/pytest-\d+", "<note>.*?</note>"]) as player:
        agent = connect("anthropic", player)
        assert agent.ask(["look into /tmp/pytest-22/x", "<note>two\nlines</note>"], [], stream=False)[0] == "ok"


def test_a_result_is_the_same_json_in_other_words(connect: Connect) -> None:
    cassette = recorded(
        user("q"), assistant(call("c1", result('{"a": 1, "b": [2]}'))), assistant("ok", id="b")
    ).cassette
    with play(cassette) as player:
        agent = connect("gemini", player)
        agent.ask(["q"], [], stream=False)
        assert agent.ask([], [("c1", '{"b":[2],"a":1}')], stream=False)[0] == "ok"


def test_files_are_compared_by_kind() -> None:
    cassette = recorded(user("look", image()), assistant("ok")).cassette
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QQ=="}}
    for content, fits in (([{"type": "text", "text": "look"}, picture], True), ("look", False)):
        with play(cassette) as player:
            body = {"model": "m", "messages": [{"role": "user", "content": content}]}
            assert post(player, "/v1/messages", body) == (200 if fits else 400)
            assert bool(player.failures) is not fits


def test_an_addition_that_was_alone_may_be_missing() -> None:
    cassette = recorded(user("q"), assistant("a"), developer("Go on then.", id="d"), assistant("b", id="b")).cassette
    with play(cassette) as player:
        body = {"messages": [{"role": "user", "content": "q"}]}
        assert post(player, "/v1/messages", body) == 200
        body["messages"].append({"role": "assistant", "content": "a"})
        assert post(player, "/v1/messages", body) == 200


def test_unrecorded_requests_without_tools_may_be_answered_aside(connect: Connect) -> None:
    title = {"messages": [{"role": "user", "content": "Give it a title"}]}
    with play(recorded().cassette, aside="A title") as player:
        assert post(player, "/v1/chat/completions", title) == 200
        assert post(player, "/v1/chat/completions", {**title, "tools": [{}]}) == 400
        assert len(player.failures) == 1
        assert connect("anthropic", player).ask(["Fix the bug"], [], stream=True) == ANSWERS[0]


def test_after_the_last_answer_there_is_none(connect: Connect, player: Player) -> None:
    track = only_track(recorded().cassette)
    agent = connect("anthropic", player)
    drive(agent, track, stream=True)
    with pytest.raises(anthropic.BadRequestError, match="one too many: all recorded answers were given"):
        agent.ask(["more"], [], stream=True)


def test_subagents_are_played_beside_their_parent(connect: Connect) -> None:
    parent = history(CONVERSATION)
    child = history([user("Look for it"), assistant("Nothing there.", id="s1")])
    child = child._replace(session=Session(id="plain:3f2a.scout", agent="plain", external_id="3f2a.scout"))
    cassette = record([parent, child]).cassette
    with play(cassette) as player:
        main, scout = connect("anthropic", player), connect("anthropic", player)
        assert main.ask(["Fix the bug"], [], stream=True) == ANSWERS[0]
        assert scout.ask(["Look for it"], [], stream=True) == ("Nothing there.", [])
        assert main.ask([], [("c1", "a.py b.py"), ("c2", "boom")], stream=True) == ANSWERS[1]
        assert player.failures == []


def test_many_ask_at_once(connect: Connect) -> None:
    children = [history([user(f"question {n}"), assistant(f"answer {n}", id=f"a{n}")]) for n in range(8)]
    answers: dict[int, Any] = {}
    with play(record(children).cassette) as player:

        def ask(number: int) -> None:
            answers[number] = connect("anthropic", player).ask([f"question {number}"], [], stream=True)

        threads = [Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {number: (f"answer {number}", []) for number in range(8)}


def post(player: Player, path: str, body: Any) -> int:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(player.url + path, data), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_what_is_no_request_is_refused(player: Player) -> None:
    assert post(player, "/v1/messages", b"{") == 400
    assert post(player, "/v1/messages", []) == 400
    assert post(player, "/v1/elsewhere", {}) == 404
    odd: list[Any] = [{"messages": 3}, {"messages": [3, {"role": 1, "content": [None, {"type": []}]}]}]
    for strange in odd:
        assert post(player, "/v1/chat/completions", strange) == 400
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{player.url}/v1/models", timeout=10)


def test_it_listens_here_alone_and_ends_with_its_block() -> None:
    with play(recorded().cassette) as player:
        assert player.url.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(player.url, timeout=1)


def test_a_file_that_is_none_is_not_played(tmp_path: Any) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(FormatError), play(tmp_path / "x.json"):
        pass
