import json
import shutil
from pathlib import Path
from typing import Any

import click
import pytest

from support.cli_runner import Command, on_terminal
from support.plain_history import SESSION
from turnlog import paths
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer


@pytest.fixture(autouse=True)
def index(store: Path) -> Path:
    """The search database of the store, up to date."""
    path = search_path(store)
    with Indexer(store, path) as indexer:
        indexer.catch_up()
    return path


def found(run: Command, *arguments: str) -> list[tuple[str, str]]:
    """Message and field of each hit, newest first."""
    result = run("search", "--json", "--sort", "newest", *arguments)
    assert result.exit_code == 0, result.stderr
    return [(hit["message_id"], hit["field"]) for hit in json.loads(result.stdout)["hits"]]


def ranked(run: Command, *arguments: str) -> list[dict[str, Any]]:
    """The sessions, best first."""
    result = run("search", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["sessions"]


def test_words_are_found_in_every_field(run: Command) -> None:
    assert found(run, "post") == []
    assert found(run, "webshop") == [("m1", "text")]
    assert found(run, "second", "thought") == [("m2", "reasoning")]
    assert found(run, "pytest") == [("m2", "input")]
    assert found(run, "green") == [("m2", "output")]
    assert found(run, "shop.png") == [("m5", "file")]
    assert found(run, "世界") == [("o1", "text")]


def test_phrases_beginnings_alternatives_and_exclusions(run: Command) -> None:
    assert found(run, '"repair the webshop"') == [("m1", "text")]
    assert found(run, '"webshop repair"') == []
    assert found(run, "websh*") == [("m1", "text")]
    assert found(run, "webshop OR 世界") == [("o1", "text"), ("m1", "text")]
    assert found(run, "scout") == [("s1", "text"), ("m2", "input")]
    assert found(run, "scout -it") == []


def test_an_unknown_short_option_explains_how_to_exclude_a_word(run: Command) -> None:
    result = run("search", "shop", "-tests")
    assert result.exit_code == 2
    assert "after --" in result.stderr
    assert "after --" not in run("search", "--tests").stderr
    assert found(run, "--", "scout", "-it") == []


def test_filters_hold(run: Command) -> None:
    assert found(run, "scout", "--field", "input") == [("m2", "input")]
    assert found(run, "scout", "--role", "user") == [("s1", "text")]
    assert found(run, "scout", "--session", "3f2.sc") == [("s1", "text")]
    assert found(run, "scout", "--tool", "Task") == [("m2", "input")]
    assert found(run, "scout", "--project", "blog") == []
    assert found(run, "scout", "--agent", "pl") == found(run, "scout")
    assert found(run, "done", "--since", "2026-11-03T00:00Z") == [("o2", "text")]
    assert found(run, "done", "--until", "2026-11-02T23:00Z") == []


def test_a_filter_alone_lists_what_fits(run: Command) -> None:
    assert {message for message, _ in found(run, "--failed")} == {"m2"}
    assert found(run, "--image", "--session", SESSION) == [("m5", "file")]
    assert run("search").exit_code == 2


def test_pages_go_on_where_the_last_one_ended(run: Command) -> None:
    first = json.loads(run("search", "scout", "--sort", "newest", "--limit", "1", "--json").stdout)
    assert (first["total"], first["total_is_exact"], first["unindexed"]) == (2, True, 0)
    assert found(run, "scout", "--limit", "1", "--cursor", first["next_cursor"]) == [("m2", "input")]
    assert run("search", "scout", "--cursor", "nonsense").exit_code == 2
    assert run("search", "scout", "--sort", "newest", "--limit", "1").stderr == "1 of 2; --limit shows more.\n"
    sessions = json.loads(run("search", "scout", "--limit", "1", "--json").stdout)
    assert (sessions["total"], sessions["total_is_exact"]) == (2, True)
    following = json.loads(run("search", "scout", "--json", "--cursor", sessions["next_cursor"]).stdout)
    assert [*sessions["sessions"], *following["sessions"]] == ranked(run, "scout")
    assert run("search", "scout", "--limit", "1").stderr == "1 of 2 sessions; --limit shows more.\n"


def test_a_hit_says_where_it_is_and_what_was_found(run: Command) -> None:
    [hit] = json.loads(run("search", "webshop", "--flat", "--json").stdout)["hits"]
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["webshop"]
    assert [place["session_id"] for place in hit["places"]] == [SESSION]
    assert hit["places"][0]["title"] == "Repair the webshop"
    lines = run("search", "webshop", "--flat").stdout.splitlines()
    assert lines[0].startswith(f"{SESSION}  2026-11-02 ")
    assert lines[0].endswith("  user text  m1  Repair the webshop")
    assert lines[1] == "  Please repair the webshop"


def test_by_default_sessions_are_listed_with_their_best_hit(run: Command) -> None:
    [session] = ranked(run, "webshop repair")
    assert session["session_id"] == SESSION
    [title] = session["names"][:1]
    assert [title["text"][start:end] for start, end in title["marks"]] == ["Repair", "webshop"]
    assert session["hit"]["message_id"] == "m1"
    assert (session["matches"], session["matches_is_exact"]) == (1, True)
    lines = run("search", "webshop").stdout.splitlines()
    assert lines[0].startswith(f"{SESSION}  2026-11-0")
    assert "  Repair the webshop  webshop" in lines[0]
    assert "  user text m1: Please repair the webshop" in lines


MANY = "webshop OR pytest OR green"


def test_more_matches_of_a_session_are_counted(run: Command) -> None:
    [session] = ranked(run, MANY, "--session", SESSION)
    every = found(run, MANY, "--session", SESSION)
    assert session["matches"] == len(every) > 1
    assert f"  +{len(every) - 1} in this session" in run("search", MANY, "--session", SESSION).stdout


def test_a_misspelt_word_is_answered_with_what_may_be_meant(run: Command) -> None:
    result = run("search", "wbeshop")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Nothing found.\nDid you mean: webshop\n"


@pytest.mark.parametrize("listed", [("--flat",), ("--sort", "newest")])
def test_a_list_of_hits_answers_a_misspelt_word_likewise(run: Command, listed: tuple[str, ...]) -> None:
    assert run("search", "wbeshop", *listed).stderr == "Nothing found.\nDid you mean: webshop\n"
    assert json.loads(run("search", "wbeshop", *listed, "--json").stdout)["suggestion"] == "webshop"
    assert json.loads(run("search", "webshop", *listed, "--json").stdout)["suggestion"] is None


def test_fields_of_a_query(run: Command) -> None:
    assert [session["session_id"] for session in ranked(run, "title:webshop")] == [SESSION]
    assert ranked(run, "repair -title:webshop") == []


def test_what_a_log_says_reaches_no_terminal_unharmed(run: Command) -> None:
    code, written = on_terminal("search", "tail")
    assert code == 0
    assert "\x1b]0;" not in written
    assert "\x1b[31m" not in written
    assert not set(run("search", "tail").stdout) & set("\x1b\x07\x08\x9b")


def test_a_terminal_shows_what_was_found_in_colour_and_short_ids() -> None:
    _, written = on_terminal("search", "世界")
    assert "\x1b[33m\x1b[1m世界\x1b[0m" in written
    assert click.unstyle(written).startswith("77aa0000  ")


def test_nothing_found_is_no_failure(run: Command) -> None:
    result = run("search", "unheard-of")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "Nothing found.\n")


def test_without_an_index_it_says_how_much_is_missing(run: Command, index: Path) -> None:
    for file in index.parent.glob(f"{index.name}*"):
        file.unlink()
    result = run("search", "webshop", "--no-sync")
    assert result.exit_code == 0
    assert "11 messages not searchable yet: `turnlog sync` indexes them." in result.stderr
    assert json.loads(run("doctor", "--json").stdout)["unindexed"] == 11


def test_forgotten_words_are_gone(run: Command) -> None:
    assert run("forget", "3f2a", "--yes").exit_code == 0
    assert found(run, "webshop") == found(run, "scout") == []
    assert found(run, "世界") == [("o1", "text")]
    assert b"Please repair" not in paths.database_path().read_bytes()


def test_a_store_that_is_named_is_indexed_first(run: Command, index: Path, tmp_path: Path) -> None:
    """A store of chats, or a copy, is brought up to date by no sync."""
    copy = tmp_path / "chats.db"
    shutil.copy(paths.database_path(), copy)
    assert found(run, "scout", "--store", str(copy))
    assert "not searchable yet" not in run("search", "scout", "--store", str(copy)).stderr


@pytest.mark.usefixtures("store")
def test_a_quotation_mark_that_is_not_closed_is_noted(run: Command) -> None:
    note = "The last quotation mark is not closed: all behind it is one phrase."
    for query, is_open in (('"unclosed', True), ('one "two" -"three', True), ('"closed"', False), ('"closed"*', False)):
        assert (note in run("search", query).stderr) == is_open, query


def test_an_excluded_word_beside_or_is_noted(run: Command) -> None:
    for order in ("relevance", "newest"):
        result = run("search", "scout OR -absent", "--sort", order)
        assert "Left out of everything: -absent. Beside OR, an excluded word is no alternative." in result.stderr
        assert "Left out" not in result.stdout
    assert run("search", "role:nosuch").exit_code == 2
    assert "there is no role 'nosuch'" in run("search", "role:nosuch").stderr
