"""A mixed corpus for judging search: the recorded sample, and sessions made of common words, with questions about both.

Each made session is about one problem of one component. Both words are in many other sessions too: as their own topic,
in listings that tools print, and in passing ("unlike the stale cache of last week"). A question is what somebody would
remember of one session: words of its title, of a prompt, of an error, a file and what was wrong. The session is known
because the question was made from it, before any search.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from support.plain_agent import session_id
from support.plain_store import at
from support.search_store import SearchStore, call, text_message
from turnlog.model import Message, Part, TextPart, ToolKind

COMPONENTS = (
    *("scheduler", "parser", "cache", "importer", "router", "mailer", "invoice", "checkout", "gallery", "uploader"),
    *("tokenizer", "planner", "exporter", "dashboard", "webhook", "migration", "queue", "indexer", "calendar"),
    *("wallet", "renderer", "crawler", "ledger", "sidebar", "profile", "payment", "watcher", "compiler", "linter"),
    "notifier",
)

PROBLEMS = (
    *("flaky", "slow", "duplicate", "missing", "stale", "crashing", "leaking", "truncated", "unsorted", "blinking"),
    *("deadlock", "timeout", "encoding", "rounding", "timezone", "overflow", "permission", "pagination", "retry"),
    *("rename", "layout", "locale", "checksum", "throttle", "rollback"),
)

ERRORS = (
    "ConnectionResetError: peer closed port {number}",
    "ValueError: invalid literal '{word}{number}'",
    "KeyError: '{word}_{number}'",
    "AssertionError: expected {number} rows of {word}",
    "OSError: cannot open {word}-{number}.lock",
    "TypeError: unexpected keyword {word}{number}",
)

PROMPTS = (
    "The {component} is broken again: {problem} as soon as two people use it. Please find out why.",
    "please look into the {problem} {component}, customers complain since Monday",
    "We have a {problem} problem with the {component}. Can you fix it and add a test?",
    "why is there a {problem} in our {component}? it worked before the release",
    "Change how the {component} works so that the {problem} goes away",
)

TITLES = ("Fix {problem} {component}", "{component}: {problem}", "Repair the {component} ({problem})")

FOLLOWING = (
    "looks good, now run all tests",
    "and what about the documentation?",
    "commit it please",
    "explain what you changed",
    "go on",
)

RECORDED = (
    ("cart failing test", "klaude:3f6f0b7c1d6b4a4e8a51f1c2d3e4f501"),
    ("test_cart.py", "klaude:3f6f0b7c1d6b4a4e8a51f1c2d3e4f501"),
    ("oops wrong window", "klaude:3f6f0b7c1d6b4a4e8a51f1c2d3e4f501"),
    ("who calls total", "klaude:7a2b0b7c1d6b4a4e8a51f1c2d3e4f502"),
    ("tour of code mode", "codex:01a1fbdc-4128-7132-b97c-ad39fdadf4ae"),
    ("forked question", "codex:01a1fbdc-3c6c-7413-b90e-0374298c9396"),
    ("dewey counter", "codex:01a1fbdc-4bdd-7671-9130-78e0e63556c9"),
    ("use an agent and wait", "claude-code:22222222-2222-4222-8222-222222222222"),
    ("what is on this picture", "claude-code:33333333-3333-4333-8333-333333333333"),
    ("deep investigation notes", "gemini-cli:113a145a-671c-457d-ad59-737dbaf0fdd4"),
)
"""Questions about the recorded sample, written by hand."""


class Question(NamedTuple):
    """A query, and the session that it means."""

    kind: str
    query: str
    session_id: str


class Topic(NamedTuple):
    """What a made session is about."""

    name: str
    component: str
    problem: str
    error: str
    file: str
    title: str | None
    prompt: str


def topics(count: int, chance: random.Random) -> list[Topic]:
    """So many different pairs of a component and a problem."""
    pairs = chance.sample([(component, problem) for component in COMPONENTS for problem in PROBLEMS], count)
    return [_topic(number, *pair, chance) for number, pair in enumerate(pairs)]


def _topic(number: int, component: str, problem: str, chance: random.Random) -> Topic:
    error = chance.choice(ERRORS).format(word=chance.choice(COMPONENTS), number=1000 + 7 * number)
    words = {"component": component, "problem": problem}
    return Topic(
        name=f"made{number:03}",
        component=component,
        problem=problem,
        error=error,
        file=f"/home/dev/shop/{component}/{chance.choice(('core', 'views', 'store', 'util'))}_{component}.py",
        title=chance.choice(TITLES).format(**words).capitalize() if chance.random() < 0.5 else None,
        prompt=chance.choice(PROMPTS).format(**words),
    )


def write(store: SearchStore, made: list[Topic], chance: random.Random) -> None:
    """Write a log for each topic, in random order over half a year."""
    for topic in made:
        start = chance.uniform(0, 60 * 24 * 180)
        log = store.log(topic.name, cwd=f"/home/dev/{chance.choice(('shop', 'site', 'tools'))}")
        if topic.title is not None:
            log.session(titles={"custom": topic.title})
        for number, message in enumerate(_messages(topic, made, start, chance)):
            log.message(msgspec.structs.replace(message, id=f"{topic.name}.{number}"))


def _messages(topic: Topic, made: list[Topic], start: float, chance: random.Random) -> Iterator[Message]:
    yield text_message("", topic.prompt, minutes=start)
    yield _answer(start + 1, TextPart(text=f"I look at the {topic.component} first."), _listing(made, chance))
    yield _answer(start + 2, call("run", f"tests failed\n{topic.error}", command="make test", status="error"))
    edit = call("edit", "done", tool="Edit", file_path=topic.file, new_string=f"def {topic.component}(): ...")
    yield _answer(start + 3, msgspec.structs.replace(edit, kind=ToolKind.EDIT))
    for number in range(chance.randint(1, 5)):
        other = chance.choice(made)
        yield text_message("", chance.choice(FOLLOWING), minutes=start + 4 + 2 * number)
        passing = f"This is unlike the {other.problem} {other.component} of last week ({other.error})."
        parts: list[Part] = [TextPart(text=f"The {topic.problem} part is done. {passing}")]
        if chance.random() < 0.5:
            parts.append(_listing(made, chance))
        yield _answer(start + 5 + 2 * number, *parts)


def _listing(made: list[Topic], chance: random.Random) -> Part:
    """What a tool prints: names of files and logs of other topics."""
    lines = [f"{other.file}: {other.problem} {other.component} TODO" for other in chance.sample(made, 6)]
    return call("list", "\n".join(lines), command="grep -rn TODO .")


def _answer(minutes: float, *parts: Part) -> Message:
    return Message(id="", role="assistant", created_at=at(minutes), parts=tuple(parts))


def questions(made: list[Topic], count: int, chance: random.Random) -> list[Question]:
    """So many questions, each about another session, and those about the recorded sample."""
    found = [Question("recorded", query, session) for query, session in RECORDED]
    kinds = (_of_title, _of_prompt, _of_error, _of_file)
    for number, topic in enumerate(chance.sample(made, count - len(RECORDED))):
        found.append(kinds[number % len(kinds)](topic, chance))
    return found


def _of_title(topic: Topic, chance: random.Random) -> Question:
    """What it was about; in half of the sessions that is their title."""
    return Question("title", _shuffled([topic.problem, topic.component], chance), session_id(topic.name))


def _of_prompt(topic: Topic, chance: random.Random) -> Question:
    """A query, with another word that one happens to remember."""
    words = [word.strip("?:,.") for word in topic.prompt.split()]
    other = chance.choice([word for word in words if len(word) > 4 and word not in (topic.component, topic.problem)])
    return Question("prompt", _shuffled([topic.component, topic.problem, other], chance), session_id(topic.name))


def _of_error(topic: Topic, chance: random.Random) -> Question:
    """The error as it was copied, or its kind and the component."""
    return Question("error", chance.choice((topic.error, f"{topic.component} {topic.error}")), session_id(topic.name))


def _of_file(topic: Topic, chance: random.Random) -> Question:
    """A file that was changed, and what was wrong with it."""
    name = topic.file.rpartition("/")[2]
    return Question("file", _shuffled([name, topic.problem], chance), session_id(topic.name))


def _shuffled(words: list[str], chance: random.Random) -> str:
    chance.shuffle(words)
    return " ".join(words)
