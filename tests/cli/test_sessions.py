import json

import click
import pytest

from support.cli_runner import Command, on_terminal
from support.plain_history import OTHER, SESSION, SUBAGENT
from turnlog.cli.lookup import abbreviations
from turnlog.model.codec import decode_session

pytestmark = pytest.mark.usefixtures("store")


def ids(run: Command, *arguments: str) -> list[str]:
    result = run("sessions", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return [session["id"] for session in json.loads(result.stdout)["items"]]


def test_sessions_are_listed_newest_first_without_subagents(run: Command) -> None:
    assert ids(run) == [OTHER, SESSION]
    assert ids(run, "--subagents") == [OTHER, SESSION, SUBAGENT]


def test_filters_hold(run: Command) -> None:
    assert ids(run, "--project", "webshop") == [SESSION]
    assert ids(run, "--model", "small") == [OTHER]
    assert ids(run, "--branch", "main") == [SESSION]
    assert ids(run, "--title", "POST") == [OTHER]
    assert ids(run, "--since", "2026-11-03T00:00Z") == [OTHER]
    assert ids(run, "--until", "2026-11-02T23:00Z") == [SESSION]
    assert ids(run, "--parent", "3f2a") == [SUBAGENT]
    assert ids(run, "--agent", "nobody") == []
    assert ids(run, "--agent", "pla") == ids(run, "--agent", "plain") != []
    assert ids(run, "--sort", "messages") == [SESSION, OTHER]


def test_pages_go_on_where_the_last_one_ended(run: Command) -> None:
    first = json.loads(run("sessions", "--json", "--limit", "1").stdout)
    assert first["total"] == 2
    second = json.loads(run("sessions", "--json", "--limit", "1", "--cursor", first["next_cursor"]).stdout)
    assert [page["items"][0]["id"] for page in (first, second)] == [OTHER, SESSION]
    assert second["next_cursor"] is None
    assert run("sessions", "--cursor", "nonsense").exit_code == 2


def test_items_are_the_models_sessions(run: Command) -> None:
    items = json.loads(run("sessions", "--json").stdout)["items"]
    session = decode_session(json.dumps(items[1]).encode())
    assert (session.title, session.counts.tool_calls, session.unpriced_calls) == ("Repair the webshop", 5, 1)


def test_in_a_pipe_nothing_is_cut(run: Command) -> None:
    result = run("sessions", "--limit", "1")
    assert OTHER in result.stdout
    assert "Write a post" in result.stdout
    assert result.stderr == "1 of 2 sessions; --limit shows more.\n"


def test_a_terminal_gets_short_ids_in_colour_that_fit() -> None:
    code, written = on_terminal("sessions", "--subagents", columns=80)
    assert code == 0
    assert "\x1b[36m" in written
    assert "-1111-" not in written
    assert {"77aa0000", "3f2a91c0", "3f2a91c0.scout"} <= set(click.unstyle(written).split())
    assert max(len(line) for line in click.unstyle(written).splitlines()) <= 80


def test_an_id_is_only_as_long_as_it_must_be_to_tell_it_apart() -> None:
    ids = ["3f2a91c0-1", "01a1fbdd-6030-7", "01a1fbdd-7122-7", "3f2a91c0-1.scout", "short", "aaaaaaaa-1", "aaaaaaaa-12"]
    assert abbreviations(ids) == {
        "3f2a91c0-1": "3f2a91c0",
        "3f2a91c0-1.scout": "3f2a91c0.scout",
        "01a1fbdd-6030-7": "01a1fbdd-6",
        "01a1fbdd-7122-7": "01a1fbdd-7",
        "short": "short",
        "aaaaaaaa-1": "aaaaaaaa-1",
        "aaaaaaaa-12": "aaaaaaaa-12",
    }
    assert abbreviations([]) == {}


def test_a_terminal_gets_no_colour_where_none_is_wanted() -> None:
    again = ("replay", SESSION, "--max-pause", "0")
    for code, written in (on_terminal(*again, NO_COLOR="1"), on_terminal(*again, TERM="dumb")):
        assert code == 0
        assert "\x1b[" not in written
    assert "\x1b[3" in on_terminal(*again, NO_COLOR="")[1]
