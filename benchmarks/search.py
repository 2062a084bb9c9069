"""Search over a store of a million parts, or several: how large, how fast to build, how fast to ask, how fast live.

    python benchmarks/search.py [--parts 1000000 5000000] [--out DIR] [--rounds 40]

The stores are synthetic: texts of `corpus.py` in new orders, with words of known rarity, written straight into the
tables. One is built for each size and kept in DIR if that is given, else deleted. Everything runs in this process, so
that a figure is the search itself: p50 and p99 over many different words, warm, and the first query of a new
connection. With two sizes the last column says how much slower the larger one answers.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from corpus import Sampler

from turnlog.store import zstd
from turnlog.store.connection import connect
from turnlog.store.frames import PLACE_COLUMNS, FramePacker, PackedFrames
from turnlog.store.search.base import EVERYTHING, SearchFilter, SearchSort
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher

AGENTS = ("claude-code", "codex", "gemini-cli", "opencode")
TOOLS = ("Read", "Bash", "Edit", "Grep", "WebFetch")
PROJECTS = 60
MESSAGES_OF_SESSION = 250
PARTS_OF_MESSAGE = 2.45
MESSAGES_OF_TEN_LINES = 4
"""A part is a line in a log, and so is each result of a tool."""

COMMON, MIDDLE, UNCOMMON, SCARCE, SELDOM, RARE = "quorum", "lattice", "trellis", "gantry", "sextant", "obelisk"
SHARES = {COMMON: 0.12, MIDDLE: 0.02, UNCOMMON: 0.01, SCARCE: 0.002, SELDOM: 0.001, RARE: 0.00002}
"""Words that no sampled text has, and the share of parts that get them."""

PHRASE = "reversible cursor handshake"
TOOL_WORD = "ECONNRESET_4711"
CJK = "可以使用向量数据库检索历史会话"

START = datetime(2026, 1, 1, tzinfo=UTC)


class Texts:
    """A pool of texts as JSON strings without their quotes, drawn from again and again."""

    def __init__(self, chance: random.Random, pool: int = 4000) -> None:
        sampler = Sampler(chance)
        self.chance = chance
        self.prompts = [_quoted(sampler.prose(sampler.size(35, 0.8, 4, 300))) for _ in range(pool // 8)]
        self.answers = [_quoted(sampler.markdown(sampler.size(90, 0.8, 10, 900))) for _ in range(pool // 4)]
        self.thoughts = [_quoted(sampler.prose(sampler.size(80, 0.8, 10, 900))) for _ in range(pool // 8)]
        self.outputs = [_quoted(_listing(sampler, index % 2 == 0)) for index in range(pool // 2)]

    def marked(self, pool: Sequence[str], tag: str, *, is_output: bool = False) -> str:
        """A text with a word of its own and, at times, one of those whose rarity is known."""
        words = [word for word, share in SHARES.items() if self.chance.random() < share]
        if self.chance.random() < 0.001:
            words.append(TOOL_WORD if is_output else self.chance.choice((PHRASE, CJK)))
        return " ".join([self.chance.choice(pool), *words, tag])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _listing(sampler: Sampler, has_arrows: bool) -> str:
    name, lines = sampler.code(sampler.size(18, 0.9, 1, 600))
    mark = "{:6d}→{}" if has_arrows else name + ":{}: {}"
    return "\n".join([mark.format(number, line) for number, line in enumerate(lines, 1)])


def build_store(path: Path, parts: int, seed: int = 7) -> None:
    """Write a store with about so many parts; only what search reads is filled in."""
    chance = random.Random(seed)
    texts = Texts(chance)
    sessions = max(1, round(parts / PARTS_OF_MESSAGE / MESSAGES_OF_SESSION))
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for key in range(1, PROJECTS + 1):
            connection.execute(
                "INSERT INTO projects (key, path, name) VALUES (?, ?, ?)", (key, f"/home/dev/p{key}", f"p{key}")
            )
        for session in range(1, sessions + 1):
            start = START + timedelta(days=300) * chance.random()
            _write_session(connection, texts, session, start)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _write_session(connection: sqlite3.Connection, texts: Texts, session: int, start: datetime) -> None:
    agent = AGENTS[session % 20 if session % 20 < len(AGENTS) else 0]
    connection.execute(
        "INSERT INTO sessions (key, agent, external_id, project_key, title) VALUES (?, ?, ?, ?, ?)",
        (session, agent, f"s{session}", session % PROJECTS + 1, f"Session {session}"),
    )
    connection.execute("INSERT INTO changes (seq, session_key, kind, at) VALUES (?, ?, 'session', 0)", (session,) * 2)
    packer = FramePacker()
    messages: list[tuple[object, ...]] = []
    members: list[tuple[int, int, int]] = []
    first = (session - 1) * MESSAGES_OF_SESSION + 1
    moment = int(start.timestamp() * 1000)
    for key in range(first, first + MESSAGES_OF_SESSION):
        moment += texts.chance.randint(400, 20_000)
        role = "user" if key % 8 == 0 else "assistant"
        body = _body(texts, key, role).encode()
        packer.add(session, key, body)
        messages.append((key, agent, f"m{key}", role, moment, session, session))
        members.append((session, key, key))
    _save(connection, messages, packer.take())
    connection.executemany("INSERT INTO memberships (session_key, position, message_key) VALUES (?, ?, ?)", members)
    connection.executemany(
        "INSERT INTO parts (message_key, sequence, type, path) VALUES (?, 0, 'tool-call', ?)",
        [(key, _path(key)) for key in range(first, first + MESSAGES_OF_SESSION) if key % 8],
    )


def _path(key: int) -> str:
    return f"/home/dev/p{key % PROJECTS}/module_{key % 997}.py"


def _save(connection: sqlite3.Connection, messages: list[tuple[object, ...]], packed: PackedFrames) -> None:
    places = packed.save(connection, zstd.compress_all(packed.texts))
    columns = ("key", "agent", "external_id", "role", "created_at", "changed_seq", "billed_key", *PLACE_COLUMNS)
    connection.executemany(
        f"INSERT INTO messages ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        [(*message, *place) for message, place in zip(messages, places, strict=True)],
    )


def _body(texts: Texts, key: int, role: str) -> str:
    if role == "user":
        parts = [f'{{"type":"text","text":"{texts.marked(texts.prompts, f"tag{key}")}"}}']
    else:
        parts = list(_answer(texts, key))
    return f'{{"id":"m{key}","role":"{role}","parts":[{",".join(parts)}]}}'


def _answer(texts: Texts, key: int) -> Iterator[str]:
    if texts.chance.random() < 0.3:
        yield f'{{"type":"reasoning","text":"{texts.marked(texts.thoughts, f"tag{key}")}"}}'
    if texts.chance.random() < 0.6:
        yield f'{{"type":"text","text":"{texts.marked(texts.answers, f"tag{key}")}"}}'
    for call in range(texts.chance.choice((1, 1, 2, 3))):
        tool = texts.chance.choice(TOOLS)
        status, state = ("error", "output-error") if texts.chance.random() < 0.03 else ("success", "output-available")
        output = texts.marked(texts.outputs, f"tag{key}", is_output=True)
        yield (
            f'{{"type":"tool-call","tool_call_id":"c{key}.{call}","tool_name":"{tool}","state":"{state}",'
            f'"input":{{"file_path":"{_path(key)}","limit":200}},'
            f'"results":[{{"id":"r","status":"{status}","content":[{{"type":"text","text":"{output}"}}]}}]}}'
        )


@dataclass(frozen=True)
class Question:
    """One kind of query: what it is asked with in each round, and the bound its median should keep, in milliseconds."""

    name: str
    bound: float
    queries: Callable[[random.Random, int], str]
    filter: SearchFilter = EVERYTHING
    sort: SearchSort = "newest"
    by_session: bool = False


def _one_of(*words: str) -> Callable[[random.Random, int], str]:
    return lambda chance, messages: chance.choice(words)


def _sampled_word(chance: random.Random, messages: int) -> str:
    words = (
        "the",
        "self",
        "import",
        "return",
        "deque",
        "header",
        "encoding",
        "timeout",
        "iterator",
        "charset",
        "widget",
    )
    return chance.choice(words)


QUESTIONS = (
    Question("any word of the texts", 2, _sampled_word),
    Question("a word in 12 % of the parts", 2, _one_of(COMMON)),
    Question("a word in 2 %", 2, _one_of(MIDDLE)),
    Question("a word in 0.2 %", 2, _one_of(SCARCE)),
    Question("a word in 0.002 %", 2, _one_of(RARE)),
    Question("a word of one message", 2, lambda chance, messages: f"tag{chance.randrange(1, messages)}"),
    Question("a word of tool outputs", 2, _one_of(TOOL_WORD)),
    Question("a phrase", 2, _one_of(f'"{PHRASE}"', '"text string"', "os.path.join", '"import self"')),
    Question("two words", 2, _one_of(f"{COMMON} {MIDDLE}", f"{COMMON} the", f"{MIDDLE} {SCARCE}")),
    Question("CJK inside a run", 2, _one_of("数据库", "向量", "历史会话")),
    Question("a beginning", 10, _one_of("con*", "imp*", "sel*", "obel*", "te*", "a*", "tag1*", "quo*")),
    Question("common + session", 50, _one_of(COMMON), SearchFilter(session="claude-code:s40")),
    Question("common + project", 50, _one_of(COMMON, "the"), SearchFilter(project="p17")),
    Question("common + rare agent", 50, _one_of(COMMON, "the"), SearchFilter(agent="opencode")),
    Question("common + tool + failed", 50, _one_of(COMMON, "the"), SearchFilter(tool="Bash", failed=True)),
    Question("scarce + failed", 50, _one_of(SCARCE), SearchFilter(failed=True)),
    Question(
        "common + field + old week",
        50,
        _one_of(COMMON, "the"),
        SearchFilter(field="text", since=START + timedelta(days=30), until=START + timedelta(days=37)),
    ),
    Question("rare + project", 50, _one_of(RARE), SearchFilter(project="p17")),
    Question("only a filter", 50, _one_of(""), SearchFilter(project="p17", failed=True)),
    Question("ranked, commonest word", 80, _one_of("the"), sort="relevance"),
    Question("ranked, a word in 2 %", 80, _one_of(MIDDLE), sort="relevance"),
    Question("ranked, two words", 80, _one_of(f"{COMMON} the"), sort="relevance"),
    Question("sessions, commonest word", 80, _one_of(COMMON), by_session=True),
    Question("sessions, a word in 2 %", 40, _one_of(MIDDLE), by_session=True),
    Question("sessions, a word in 1 %", 20, _one_of(UNCOMMON), by_session=True),
    Question("sessions, a word in 0.2 %", 10, _one_of(SCARCE), by_session=True),
    Question("sessions, a word in 0.1 %", 5, _one_of(SELDOM), by_session=True),
    Question("sessions, two common words", 80, _one_of(f"{COMMON} the", "the self"), by_session=True),
    Question("sessions, two rare words", 80, _one_of(f"{SCARCE} {MIDDLE}"), by_session=True),
    Question("sessions, a misspelt word", 40, _one_of("gantri"), by_session=True),
)


def ask(searcher: Searcher, question: Question, rounds: int, messages: int) -> list[float]:
    """Milliseconds of CPU of each round: other programs on the machine change them least."""
    chance = random.Random(question.name)
    times: list[float] = []
    for _ in range(rounds):
        query = question.queries(chance, messages)
        started = time.thread_time()
        if question.by_session:
            searcher.sessions(query, question.filter)
        else:
            searcher.search(query, question.filter, sort=question.sort)
        times.append((time.thread_time() - started) * 1000)
    return times


def live(store: Path, search: Path, rounds: int) -> list[float]:
    """Milliseconds from a commit of ten new lines until they can be found."""
    texts = Texts(random.Random(11), 400)
    times: list[float] = []
    with closing(connect(store)) as connection, Indexer(store, search) as indexer:
        key, now = connection.execute("SELECT max(key), max(created_at) FROM messages").fetchone()
        for _ in range(rounds):
            connection.execute("BEGIN")
            sequence = connection.execute(
                "INSERT INTO changes (session_key, kind, at) VALUES (1, 'session', 0)"
            ).lastrowid
            for _ in range(MESSAGES_OF_TEN_LINES):
                key += 1
                body = _body(texts, key, "assistant").encode()
                now += 4000
                packer = FramePacker()
                packer.add(1, key, body)
                message = (key, "claude-code", f"m{key}", "assistant", now, sequence, 1)
                _save(connection, [message], packer.take())
                connection.execute(
                    "INSERT INTO memberships (session_key, position, message_key) VALUES (1, ?, ?)", (key, key)
                )
            connection.execute("COMMIT")
            started = time.perf_counter()
            indexer.step(wait=False)
            times.append((time.perf_counter() - started) * 1000)
    return times


def _percentile(times: Sequence[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def measure(folder: Path, parts: int, rounds: int) -> dict[str, float]:
    """Build, index and ask a store of one size; return the medians by name of the question."""
    store, search = folder / f"store-{parts}.db", folder / f"search-{parts}.db"
    print(f"\n{parts:,} parts")
    if not store.exists():
        started = time.perf_counter()
        build_store(store, parts)
        print(f"  store written in {time.perf_counter() - started:.0f} s, {store.stat().st_size / 1e6:.0f} MB")
    with Indexer(store, search) as indexer:
        wall, cpu = time.perf_counter(), time.process_time()
        if indexer.catch_up():
            print(f"  indexed in {time.perf_counter() - wall:.1f} s, {time.process_time() - cpu:.1f} s CPU")
    with closing(sqlite3.connect(store)) as connection:
        messages, text = connection.execute("SELECT count(*), sum(body_size) FROM messages").fetchone()
    size = search.stat().st_size
    print(
        f"  {messages:,} messages, {text / 1e6:.0f} MB of bodies, index {size / 1e6:.0f} MB = {size / text:.2f} of it"
    )
    print(f"  {'':28}{'first':>9}{'p50':>9}{'p99':>9}{'bound':>8}   milliseconds")
    medians: dict[str, float] = {}
    for question in QUESTIONS:
        with Searcher(store, search) as searcher:
            first, *times = ask(searcher, question, rounds + 1, messages)
        middle = medians[question.name] = statistics.median(times)
        late = "" if middle <= question.bound else "  <-- over"
        print(
            f"  {question.name:28}{first:9.2f}{middle:9.2f}{_percentile(times, 0.99):9.2f}{question.bound:8.0f}{late}"
        )
    times = live(store, search, 5 * rounds)
    print(
        f"  ten lines live              {times[0]:9.2f}{statistics.median(times):9.2f}{_percentile(times, 0.99):9.2f}"
        f"{5:8.0f}   max {max(times):.1f}"
    )
    return medians


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure search over synthetic stores.")
    parser.add_argument("--parts", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--out", type=Path, help="keep the stores here, and use those that are there")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = [measure(folder, parts, options.rounds) for parts in options.parts]
    if len(results) > 1:
        print(f"\np50 of {options.parts[-1]:,} parts / p50 of {options.parts[0]:,}")
        for name, middle in results[-1].items():
            print(f"  {name:28}{middle / results[0][name]:9.2f}")


if __name__ == "__main__":
    main()
