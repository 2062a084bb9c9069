from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.store.search.query import parse_query
from turnlog.store.search.snippets import LENGTH, Snippet, TermFinder


def snippet(query: str, text: str) -> Snippet:
    return TermFinder(parse_query(query).terms).snippet(text)


def marked(query: str, text: str) -> list[str]:
    found = snippet(query, text)
    return [found.text[start:end] for start, end in found.marks]


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("reset", "the Connection was RESET by a preset", ["RESET"]),
        ("Reset", "a reset", ["reset"]),
        ("rEsEt", "a ReSeT", ["ReSeT"]),
        ("one two", "two and one, one and two", ["two", "one", "one", "two"]),
        ("one -two", "one two", ["one"]),
        ("resume", "Résumé of a résumé", ["Résumé", "résumé"]),
        ("RÉSUMÉ", "resume", ["resume"]),
        ("Größe", "die GRÖSSE, die große", ["große"]),
        ("größe", "Die GRÖßE", ["GRÖßE"]),
        (
            "snake_case",
            "a snake_case, a Snake-Case, a snakecase, snake\n  case",
            ["snake_case", "Snake-Case", "snake case"],
        ),
        ("a.b.c", "x.a.b.c.d a.b.cd", ["a.b.c"]),
        ("foo::bar", "foo::bar()", ["foo::bar"]),
        ('"open the door"', "Open  the\tdoor; open the doors", ["Open the door"]),
        ("conn*", "conn connect CONNECTION disconnect", ["conn", "connect", "CONNECTION"]),
        ("open.conn*", "open connection, open socket", ["open connection"]),
        ("会话", "我们的会话分支", ["会话"]),
        ("会", "大会堂", ["会"]),
        ("用React", "使用React框架", ["用React"]),
        ("react", "使用React框架", ["React"]),
        ("rea*", "使用React框架", ["React"]),
        ("'word'", "sword word's", ["word"]),
        ("4711", "ECONNRESET_4711 14711", ["4711"]),
        ("wid-get", "🙂\ufeff a wi\u0301d-ge\u0301t, wi\u200bd\xad-get", ["wi\u0301d-ge\u0301t", "wi\u200bd\xad-get"]),
        ("wi\u200bd*", "wid wi\xaddget, \u2060wi\u0301dge\u0301", ["wid", "wi\xaddget", "wi\u0301dge\u0301"]),
        ("wid", "wid\xadget wid", ["wid"]),
        ("xyz", "x\u0302yz", ["x\u0302yz"]),
        ("がん", "か\u3099ん か\u3099", ["か\u3099ん"]),
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8어", ["\u1112\u1161\u11ab\u1100\u116e\u11a8"]),
        ("آب", "\u0627\u0653ب", ["\u0627\u0653ب"]),
    ],
)
def test_marks_are_what_the_index_finds(query: str, text: str, expected: list[str]) -> None:
    assert marked(query, text) == expected


@pytest.mark.parametrize("mark", ["→", "\t"])
def test_a_phrase_goes_on_over_the_line_numbers_of_a_listing(mark: str) -> None:
    text = f"   98{mark}def first(\n   99{mark}\n  100{mark}    second):"
    assert snippet('"first second"', text) == Snippet("def first( second):", ((4, 17),))


def test_a_snippet_is_one_line_around_the_first_place() -> None:
    text = "\n".join(f"line {number} of the log" for number in range(500)) + " needle " + "tail " * 100 + "needle"
    found = snippet("needle", text)
    assert found.text.startswith("…")
    assert found.text.endswith("…")
    assert len(found.text) <= LENGTH + 2
    assert 20 < found.marks[0][0] < 60
    assert "\n" not in found.text


def test_where_most_terms_are_close_wins() -> None:
    text = "alpha " + "filler " * 100 + "beta " + "filler " * 100 + "beta and alpha together" + " end" * 100
    assert marked("alpha beta", text) == ["beta", "alpha"]


def test_the_beginning_is_shown_when_nothing_is_marked() -> None:
    assert snippet("absent", "short text") == Snippet("short text", ())
    assert snippet("", "word " * 100).text == ("word " * 32).strip()[:LENGTH] + "…"


def test_control_characters_and_blank_space_become_one_space() -> None:
    assert snippet("red", "\0red\0\0 \t\r\n\u2028text\x7f\x9b") == Snippet("red text", ((0, 3),))


def test_terminal_sequences_are_left_out() -> None:
    text = "a \x1b[1;31mred\x1b[0m \x1b]8;;https://x.example\x1b\\link\x1b]8;;\x07"
    assert snippet("red", text) == Snippet("a red link", ((2, 5),))


def test_a_snippet_begins_before_a_word_behind_many_hidden_characters() -> None:
    found = snippet("needle", "\u200b" * 500 + "hay " * 100 + "ne\xade\u0301dle" + " end" * 100)
    assert found.text[slice(*found.marks[0])] == "ne\xade\u0301dle"
    assert 20 < found.marks[0][0] < 60


def test_a_word_behind_many_others_like_it_is_found() -> None:
    text = "selfish " * 1000 + "self" + " selfish" * 1000
    assert marked("self", text) == ["self"]


def test_overlapping_marks_are_one() -> None:
    assert marked('"a b" "b c"', "a b c") == ["a b c"]
    assert marked("会话分 话分支", "会话分支") == ["会话分支"]


def test_terms_are_counted_for_ranking() -> None:
    finder = TermFinder(parse_query("Error timeout").terms)
    assert finder.count("Error error timeout") == [2, 1]


@given(st.text(max_size=300), st.text(max_size=20))
def test_marks_lie_inside_the_snippet_in_order(text: str, query: str) -> None:
    found = snippet(query, text)
    end = 0
    for start, stop in found.marks:
        assert end <= start < stop <= len(found.text)
        end = stop


@given(st.text(max_size=40), st.sampled_from(["needle", "Nadel_x", "针", "針と糸", "été"]), st.text(max_size=40))
def test_a_word_between_separators_is_always_marked(before: str, word: str, after: str) -> None:
    found = marked(word, f"{before}\n{word}\n{after}")
    assert word in found or any(word in each for each in found)
