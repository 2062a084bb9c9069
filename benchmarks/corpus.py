"""Write a home folder full of Claude Code logs, of a chosen size, with the right answers beside it.

    python benchmarks/corpus.py --out /tmp/bench/home --mb 300
    python benchmarks/corpus.py --out /tmp/bench/many --small 10000

Prose and code are sampled from the standard library of the running Python, so vocabulary and compressibility are
near those of real logs. The same options, seed and Python give the same bytes. On purpose there are: answers spread
over several lines whose early lines carry placeholder token counts, sessions resumed into a second file, rewinds,
compactions, subagents in files of their own, images, signed thinking and failed tools.
`truth.json` says what a reader must find. Only the standard library is used. Other agents' logs are left out.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import re
import sysconfig
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

MODELS = ("claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929")
SUBAGENT_MODEL = "claude-haiku-4-5-20251001"
PROJECTS = ("atlas", "billing", "compiler", "dashboard", "exporter", "firmware", "gateway", "harbor", "indexer")
LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
VERSIONS = ("2.0.76", "2.1.12", "2.1.50", "2.1.98")
SUBAGENT_KINDS = ("Explore", "Plan", "general-purpose")

# What is hidden in the text, and how likely one prompt, answer or tool output is to carry it.
NEEDLES = {
    "word": ("zephyrquartz", 0.0006),
    "phrase": ("reversible cursor handshake", 0.002),
    "tool": ("ETIMEDOUT_9173", 0.0005),
    "cjk": ("会话分支导航", 0.001),
}

COMPACT_AT_TOKENS = 155_000
SMALLEST_SESSION, LARGEST_SESSION = 9_000, 9_000_000
COPYABLE_BYTES = 800_000


@dataclass
class SessionTruth:
    """What one session holds; a subagent counts toward the session that started it. A copied message counts once."""

    file: str
    project: str
    prompts: int = 0
    api_messages: int = 0
    tool_calls: int = 0
    subagents: int = 0
    copied_from: str | None = None
    usage: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])


@dataclass
class Truth:
    """The right answers for the whole tree. `copied_api_messages` are in two files and must be counted once."""

    files: int = 0
    bytes: int = 0
    lines: int = 0
    sessions: int = 0
    subagents: int = 0
    prompts: int = 0
    api_messages: int = 0
    copied_api_messages: int = 0
    tool_calls: int = 0
    failed_tool_calls: int = 0
    images: int = 0
    thinking: int = 0
    rewinds: int = 0
    compactions: int = 0
    usage: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    needles: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    by_session: dict[str, SessionTruth] = field(default_factory=dict[str, SessionTruth])


class Sampler:
    """Words, Markdown and code out of the standard library's own sources."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        library = Path(sysconfig.get_paths()["stdlib"])
        self.sources: list[tuple[str, list[str]]] = []
        self.words: list[str] = []
        for path in sorted([*library.glob("*.py"), *library.glob("asyncio/*.py"), *library.glob("email/*.py")]):
            self._take(path)

    def _take(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8", errors="replace")
        if not 2_000 < len(text) < 200_000:
            return
        self.sources.append((path.name, text.splitlines()))
        for docstring in re.findall(r'"""(.+?)"""', text, re.DOTALL):
            self.words += re.findall(r"[A-Za-z][\w'()-]*[.,:;]?", docstring)

    def prose(self, count: int) -> str:
        """`count` words, in short runs taken from one place each: locally readable, never twice the same."""
        taken: list[str] = []
        while len(taken) < count:
            length = min(self.chance.randint(2, 9), count - len(taken))
            start = self.chance.randrange(len(self.words) - length)
            taken += self.words[start : start + length]
        return " ".join(taken)

    def code(self, count: int) -> tuple[str, list[str]]:
        """A file's name and `count` of its lines, some names in them changed so that no two reads are equal."""
        name, lines = self.chance.choice(self.sources)
        start = self.chance.randrange(max(1, len(lines) - count))
        suffix = f"_{self.chance.getrandbits(20):x}"
        return name, [
            re.sub(r"\b(self|name|value|data|key)\b", rf"\1{suffix}", line) if self.chance.random() < 0.12 else line
            for line in lines[start : start + count]
        ]

    def markdown(self, count: int) -> str:
        """About `count` words as paragraphs, lists and fenced code."""
        blocks: list[str] = []
        for _ in range(max(1, count // 45)):
            shape = self.chance.choices(("plain", "list", "heading", "code"), (6, 2, 1, 1))[0]
            if shape == "plain":
                blocks.append(self.prose(45))
            elif shape == "list":
                blocks.append("\n".join(f"- **{self.prose(2)}** {self.prose(13)}" for _ in range(3)))
            elif shape == "heading":
                blocks.append(f"## {self.prose(4)}\n\n{self.prose(40)}")
            else:
                blocks.append("```python\n{}\n```".format("\n".join(self.code(self.chance.randint(4, 18))[1])))
        return "\n\n".join(blocks)

    def size(self, middle: float, spread: float, least: int, most: int) -> int:
        """A log-normal number: mostly near `middle`, at times far larger."""
        return int(min(most, max(least, middle * self.chance.lognormvariate(0, spread))))

    def token(self, prefix: str, length: int) -> str:
        return prefix + "".join(self.chance.choices(LETTERS, k=length))

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))

    def base64(self, length: int) -> str:
        return base64.b64encode(self.chance.randbytes(length)).decode()


@dataclass
class ToolRun:
    """One tool call and what came of it."""

    arguments: Record
    output: str
    structured: Any
    failed: bool = False


def run_read(text: Sampler, folder: str) -> ToolRun:
    name, lines = text.code(text.size(75, 0.9, 8, 1500))
    start, path = text.chance.randint(1, 400), f"{folder}/{name}"
    shown = "\n".join(f"{number:6d}→{line}" for number, line in enumerate(lines, start))
    details = {"filePath": path, "content": "\n".join(lines), "numLines": len(lines), "startLine": start}
    details["totalLines"] = start + len(lines)
    return ToolRun({"file_path": path, "offset": start}, shown, {"type": "text", "file": details})


def run_bash(text: Sampler, folder: str) -> ToolRun:
    name, lines = text.code(text.size(25, 1.1, 2, 600))
    program = text.chance.choice(("pytest -q", "rg -n TODO", "git log --oneline --", "cargo test", "ls -la"))
    output = "\n".join(f"{name}:{number}: {line}" for number, line in enumerate(lines, 1))
    arguments = {"command": f"{program} {name}", "description": text.prose(5)}
    if text.chance.random() < 0.07:
        output = f"Error: Exit code 1\n{output}"
        return ToolRun(arguments, output, output, failed=True)
    return ToolRun(arguments, output, {"stdout": output, "stderr": "", "interrupted": False, "isImage": False})


def run_edit(text: Sampler, folder: str) -> ToolRun:
    name, before = text.code(text.chance.randint(3, 25))
    after, path = text.code(text.chance.randint(3, 30))[1], f"{folder}/{name}"
    hunk: Record = {"oldStart": 10, "oldLines": len(before), "newStart": 10, "newLines": len(after)}
    hunk["lines"] = [f"-{line}" for line in before] + [f"+{line}" for line in after]
    old, new = "\n".join(before), "\n".join(after)
    structured = {"filePath": path, "oldString": old, "newString": new, "originalFile": None, "structuredPatch": [hunk]}
    arguments = {"file_path": path, "old_string": old, "new_string": new}
    return ToolRun(arguments, f"The file {path} has been updated.", structured)


def run_write(text: Sampler, folder: str) -> ToolRun:
    name, lines = text.code(text.chance.randint(10, 160))
    path, content = f"{folder}/new_{name}", "\n".join(lines)
    structured: Record = {"type": "create", "filePath": path, "content": content, "structuredPatch": []}
    structured["originalFile"] = None
    return ToolRun({"file_path": path, "content": content}, f"File created successfully at: {path}", structured)


def run_grep(text: Sampler, folder: str) -> ToolRun:
    found = [f"{folder}/{text.chance.choice(text.sources)[0]}" for _ in range(text.chance.randint(1, 60))]
    structured = {"mode": "files_with_matches", "filenames": found, "numFiles": len(found)}
    return ToolRun({"pattern": text.prose(1), "output_mode": "files_with_matches"}, "\n".join(found), structured)


def run_todo(text: Sampler, folder: str) -> ToolRun:
    states = ("pending", "in_progress", "completed")
    todos = [
        {"content": text.prose(6), "status": text.chance.choice(states), "activeForm": text.prose(6)}
        for _ in range(text.chance.randint(2, 8))
    ]
    return ToolRun({"todos": todos}, "Todos have been modified successfully.", {"oldTodos": [], "newTodos": todos})


def run_task(text: Sampler, folder: str) -> ToolRun:
    arguments = {"description": text.prose(4), "prompt": text.prose(60)}
    arguments["subagent_type"] = text.chance.choice(SUBAGENT_KINDS)
    return ToolRun(arguments, text.markdown(120), {})


TOOLS: dict[str, tuple[float, Callable[[Sampler, str], ToolRun]]] = {
    "Read": (0.35, run_read),
    "Bash": (0.28, run_bash),
    "Edit": (0.18, run_edit),
    "Write": (0.07, run_write),
    "Grep": (0.06, run_grep),
    "TodoWrite": (0.045, run_todo),
    "Task": (0.015, run_task),
}


@dataclass
class LogFile:
    """One log file in the making: gives each record its id, parent, time and envelope, and knows its own size."""

    text: Sampler
    session_id: str
    project: str
    now: datetime
    agent_id: str | None = None
    parent: str | None = None
    lines: list[str] = field(default_factory=list[str])
    size: int = 0

    def __post_init__(self) -> None:
        self.folder = f"/home/dev/{self.project}"
        self.version = self.text.chance.choice(VERSIONS)
        self.branch = self.text.chance.choice(("main", "main", f"fix/{self.text.chance.getrandbits(16):04x}"))

    @property
    def path(self) -> Path:
        folder = Path(".claude/projects", self.folder.replace("/", "-"))
        if self.agent_id:
            return folder / self.session_id / "subagents" / f"agent-{self.agent_id}.jsonl"
        return folder / f"{self.session_id}.jsonl"

    def wait(self, least: float, most: float) -> None:
        self.now += timedelta(seconds=self.text.chance.uniform(least, most))

    def stamp(self) -> str:
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def add(self, kind: str, **fields: Any) -> None:
        """Append a record to the chain of messages."""
        record: Record = {"parentUuid": self.parent, "isSidechain": self.agent_id is not None, "userType": "external"}
        record |= {"cwd": self.folder, "sessionId": self.session_id, "version": self.version, "gitBranch": self.branch}
        if self.agent_id:
            record["agentId"] = self.agent_id
        record |= {"type": kind, **fields, "uuid": self.text.uuid(), "timestamp": self.stamp()}
        self.parent = record["uuid"]
        self.add_unchained(record)

    def add_unchained(self, record: Record) -> None:
        """Append a record that stands outside the chain, such as a title."""
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        self.lines.append(line)
        self.size += len(line.encode()) + 1

    def save(self, home: Path) -> None:
        target = home / self.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes("".join(f"{line}\n" for line in self.lines).encode())
        os.utime(target, (self.now.timestamp(), self.now.timestamp()))


class Corpus:
    """Writes sessions below `home` and counts what it wrote."""

    def __init__(self, home: Path, seed: int, end: datetime, days: int = 90) -> None:
        self.home, self.end, self.days = home, end, days
        self.chance = random.Random(seed)
        self.text = Sampler(self.chance)
        self.truth = Truth(needles={name: {"text": needle, "sessions": []} for name, (needle, _) in NEEDLES.items()})
        self.copyable: dict[str, LogFile] = {}
        self.images = [self._image() for _ in range(24)]

    def _image(self) -> str:
        shell = b"\x89PNG\r\n\x1a\n" + self.chance.randbytes(self.chance.randint(6_000, 60_000))
        return base64.b64encode(shell).decode()

    def write(self, megabytes: float, giant_megabytes: float) -> None:
        """Sessions of log-normal size until the tree holds `megabytes`; first a giant one where it fits twice."""
        if 0 < giant_megabytes * 2 <= megabytes:
            self.write_session(int(giant_megabytes * 1e6))
        while self.truth.bytes < megabytes * 1e6:
            self.write_session(self.text.size(330_000, 1.3, SMALLEST_SESSION, LARGEST_SESSION))

    def write_small(self, count: int) -> None:
        """`count` sessions of one prompt and one answer, twenty to a project folder."""
        for number in range(count):
            log = self._start(f"project-{number // 20}")
            self._prompt(log)
            self._step(log, 0, last=True)
            self._finish(log)

    def write_session(self, target: int) -> None:
        log = self._start(self.chance.choice(PROJECTS))
        source = self.copyable.get(log.project)
        if source and self.chance.random() < 0.06:
            self._copy(source, log)
            target += log.size
        snapshot: Record = {"messageId": self.text.uuid(), "trackedFileBackups": {}, "timestamp": log.stamp()}
        log.add_unchained({"type": "file-history-snapshot", "messageId": snapshot["messageId"], "snapshot": snapshot})
        self._fill(log, target)
        log.add_unchained({"type": "ai-title", "sessionId": log.session_id, "aiTitle": self.text.prose(6)})
        self._finish(log)
        if log.size < COPYABLE_BYTES:
            self.copyable[log.project] = log

    def save_truth(self) -> None:
        answers = json.dumps(asdict(self.truth), ensure_ascii=False, indent=1)
        (self.home / "truth.json").write_text(answers + "\n", encoding="utf-8")

    def _start(self, project: str) -> LogFile:
        start = self.end - timedelta(seconds=self.chance.random() * self.days * 86_400)
        log = LogFile(self.text, self.text.uuid(), project, start)
        self.truth.by_session[log.session_id] = SessionTruth(log.path.as_posix(), project)
        self.truth.sessions += 1
        return log

    def _finish(self, log: LogFile) -> None:
        log.save(self.home)
        self.truth.files += 1
        self.truth.bytes += log.size
        self.truth.lines += len(log.lines)

    def _copy(self, source: LogFile, log: LogFile) -> None:
        """Resume `source` in a file of its own: the same messages and ids under the new session's id."""
        for line in source.lines:
            record: Record = json.loads(line)
            if "sessionId" in record:
                record["sessionId"] = log.session_id
            log.add_unchained(record)
            log.parent = record.get("uuid", log.parent)
            if record["type"] == "assistant" and record["message"]["stop_reason"]:
                self.truth.copied_api_messages += 1
        log.now = max(log.now, source.now + timedelta(hours=2))
        self.truth.by_session[log.session_id].copied_from = source.session_id

    def _fill(self, log: LogFile, target: int) -> None:
        context, turns = self.chance.randint(12_000, 19_000), 0
        model = SUBAGENT_MODEL if log.agent_id else self.chance.choice(MODELS)
        while log.size < target:
            log.wait(5, 400)
            before, turns = log.parent, turns + 1
            self._prompt(log)
            if turns > 2 and not log.agent_id and self.chance.random() < 0.04:
                log.parent = before
                self._prompt(log)
                self.truth.rewinds += 1
            steps = self.text.size(5, 0.8, 1, 60)
            for step in range(steps):
                context = self._step(log, context, last=step == steps - 1, model=model)
                if context > COMPACT_AT_TOKENS and not log.agent_id:
                    context = self._compact(log, context)
            if not log.agent_id:
                log.add("system", subtype="turn_duration", durationMs=self.chance.randint(2_000, 400_000), isMeta=False)

    def _prompt(self, log: LogFile) -> None:
        words = self._hide(log, self.text.prose(self.text.size(25, 0.9, 4, 400)), "word", "phrase", "cjk")
        content: Any = words
        if not log.agent_id and self.chance.random() < 0.03:
            source = {"type": "base64", "media_type": "image/png", "data": self.chance.choice(self.images)}
            content = [{"type": "image", "source": source}, {"type": "text", "text": words}]
            self.truth.images += 1
        log.add("user", message={"role": "user", "content": content}, promptId=self.text.uuid())
        if not log.agent_id:
            self.truth.prompts += 1
            self.truth.by_session[log.session_id].prompts += 1

    def _step(self, log: LogFile, context: int, *, last: bool, model: str = MODELS[0]) -> int:
        """One model call: its answer over one line a block, then the results of its calls. Returns the new context."""
        calls = [] if last else [self._call(log) for _ in range(1 if self.chance.random() < 0.8 else 3)]
        blocks = self._thoughts(log, last=last) + [block for block, _ in calls]
        output = max(1, sum(len(json.dumps(block)) for block in blocks) // 4)
        self._answer(log, blocks, model, context, output)
        added = output + sum(self._result(log, block, run) for block, run in calls)
        return context + added

    def _thoughts(self, log: LogFile, *, last: bool) -> list[Record]:
        blocks: list[Record] = []
        if self.chance.random() < 0.35:
            thinking, signature = self.text.prose(self.chance.randint(20, 220)), self.text.base64(350)
            blocks.append({"type": "thinking", "thinking": thinking, "signature": signature})
            self.truth.thinking += 1
        if last or self.chance.random() < 0.4:
            words = self.chance.randint(30, 260) if last else self.chance.randint(8, 60)
            said = self._hide(log, self.text.markdown(words), "word", "phrase", "cjk")
            blocks.append({"type": "text", "text": said})
        return blocks

    def _call(self, log: LogFile) -> tuple[Record, ToolRun]:
        offered = [name for name in TOOLS if name != "Task" or not log.agent_id]
        name = self.chance.choices(offered, [TOOLS[each][0] for each in offered])[0]
        run = TOOLS[name][1](self.text, log.folder)
        block = {"type": "tool_use", "id": self.text.token("toolu_01", 22), "name": name, "input": run.arguments}
        self.truth.tool_calls += 1
        self.truth.failed_tool_calls += run.failed
        self.truth.by_session[log.session_id].tool_calls += 1
        return block, run

    def _answer(self, log: LogFile, blocks: list[Record], model: str, context: int, output: int) -> None:
        written, lasting = self.chance.randint(200, 3_000), self.chance.random() < 0.4
        usage: Record = {"input_tokens": self.chance.randint(1, 8), "cache_creation_input_tokens": written}
        usage |= {"cache_read_input_tokens": context, "output_tokens": output, "service_tier": "standard"}
        lifetimes = {"ephemeral_5m_input_tokens": 0 if lasting else written}
        lifetimes["ephemeral_1h_input_tokens"] = written if lasting else 0
        usage["cache_creation"] = lifetimes
        message_id, request_id = self.text.token("msg_01", 22), self.text.token("req_011C", 20)
        for block in blocks:
            final = block is blocks[-1]
            stop = ("tool_use" if block["type"] == "tool_use" else "end_turn") if final else None
            shown = usage if final else usage | {"output_tokens": min(output, self.chance.randint(1, 8))}
            message: Record = {"model": model, "id": message_id, "type": "message", "role": "assistant"}
            message |= {"content": [block], "stop_reason": stop, "stop_sequence": None, "usage": shown}
            log.wait(0.3, 6)
            log.add("assistant", message=message, requestId=request_id)
        self._count_usage(log, model, usage)

    def _count_usage(self, log: LogFile, model: str, usage: Record) -> None:
        buckets = {
            "input": usage["input_tokens"],
            "output": usage["output_tokens"],
            "cache_read": usage["cache_read_input_tokens"],
            "cache_write_5m": usage["cache_creation"]["ephemeral_5m_input_tokens"],
            "cache_write_1h": usage["cache_creation"]["ephemeral_1h_input_tokens"],
        }
        session = self.truth.by_session[log.session_id]
        for totals in (self.truth.usage, session.usage):
            total = totals.setdefault(model, dict.fromkeys(buckets, 0))
            for bucket, tokens in buckets.items():
                total[bucket] += tokens
        self.truth.api_messages += 1
        session.api_messages += 1

    def _result(self, log: LogFile, block: Record, run: ToolRun) -> int:
        """Write the result of one call. Returns the tokens it adds to the context."""
        log.wait(0.05, 20)
        if block["name"] == "Bash" and not run.failed:
            run.output = run.structured["stdout"] = self._hide(log, run.output, "tool")
        if block["name"] == "Task":
            run.structured = self._subagent(log, block)
        content: Record = {"tool_use_id": block["id"], "type": "tool_result", "content": run.output}
        if run.failed:
            content["is_error"] = True
        log.add("user", message={"role": "user", "content": [content]}, toolUseResult=run.structured)
        return max(20, len(run.output) // 4)

    def _subagent(self, log: LogFile, block: Record) -> Record:
        agent_id = f"a{self.chance.getrandbits(64):016x}"
        child = LogFile(self.text, log.session_id, log.project, log.now, agent_id)
        self._fill(child, self.chance.randint(8_000, 160_000))
        self._finish(child)
        kind, description = block["input"]["subagent_type"], block["input"]["description"]
        link = {"agentType": kind, "description": description, "toolUseId": block["id"]}
        (self.home / child.path).with_suffix(".meta.json").write_text(json.dumps(link), encoding="utf-8")
        log.now = child.now
        self.truth.subagents += 1
        self.truth.by_session[log.session_id].subagents += 1
        said = [{"type": "text", "text": self.text.prose(60)}]
        return {"status": "completed", "prompt": block["input"]["prompt"], "agentId": agent_id, "content": said}

    def _compact(self, log: LogFile, context: int) -> int:
        logical_parent, log.parent = log.parent, None
        boundary = {"content": "Conversation compacted", "isMeta": False, "level": "info"}
        boundary |= {"logicalParentUuid": logical_parent, "compactMetadata": {"trigger": "auto", "preTokens": context}}
        log.add("system", subtype="compact_boundary", **boundary)
        summary = "This session is being continued from a previous conversation that ran out of context.\n\n"
        message = {"role": "user", "content": summary + self.text.markdown(500)}
        log.add("user", message=message, isCompactSummary=True, isVisibleInTranscriptOnly=True)
        self.truth.compactions += 1
        return self.chance.randint(22_000, 30_000)

    def _hide(self, log: LogFile, text: str, *names: str) -> str:
        for name in names:
            needle, likelihood = NEEDLES[name]
            if self.chance.random() < likelihood:
                self.truth.needles[name]["sessions"].append(log.session_id)
                text = f"{text} {needle} {self.text.prose(5)}"
        return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Write Claude Code logs of a chosen size, and truth.json beside them.")
    parser.add_argument("--out", type=Path, required=True, help="home folder to write into (must not exist)")
    parser.add_argument("--mb", type=float, default=300, help="size of all logs, in millions of bytes")
    parser.add_argument("--giant-mb", type=float, default=24, help="size of the one giant session; 0 for none")
    parser.add_argument("--small", type=int, default=0, help="write this many tiny sessions instead")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--end", type=datetime.fromisoformat, default=datetime(2026, 11, 20, 18, tzinfo=UTC))
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    corpus = Corpus(options.out, options.seed, options.end.astimezone(UTC))
    if options.small:
        corpus.write_small(options.small)
    else:
        corpus.write(options.mb, options.giant_mb)
    corpus.save_truth()
    print(json.dumps({name: value for name, value in asdict(corpus.truth).items() if isinstance(value, int)}))


if __name__ == "__main__":
    main()
