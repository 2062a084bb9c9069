"""The types that openapi-typescript makes of our OpenAPI document are true of what the server answers (R-C17)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from support.ai_sdk_judge import FOLDER
from support.browser_server import serving
from support.browser_visit import TOKEN
from support.described_responses import address_of, check_response, description
from support.plain_store import read_home
from support.server_history import MAIN, write_history
from turnlog.runs.lifecycle import ended, new_run, save
from turnlog.server import create_app

LOG = Path(__file__).parents[1] / "data/claude_code/costs/c01_blocks_partial_output/home"

# The page's TypeScript 7 is a program of machine code and takes a tenth of the time of the version 5 that
# openapi-typescript needs.
COMPILER = Path(__file__).parents[2] / "web" / "node_modules" / ".bin" / "tsc"
STRICT = ("--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", "--pretty", "false")
MODULES = ("--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom")

ADDRESSES = (
    "/api/sessions",
    f"/api/sessions/{MAIN}",
    f"/api/sessions/{MAIN}/window",
    f"/api/sessions/{MAIN}/outline",
    f"/api/sessions/{MAIN}/replay",
    f"/api/sessions/{MAIN}/files",
    f"/api/sessions/{MAIN}/prompt",
    f"/api/sessions/{MAIN}/ui-messages",
    "/api/sessions/plain:quiet/window",
    "/api/sessions/plain:quiet",
    "/api/sessions/nobody",
    "/api/messages/m2",
    "/api/messages/m2/raw",
    "/api/tool-calls",
    "/api/tools",
    "/api/files/touched",
    "/api/files?path=/work/shop/frame.py",
    "/api/usage",
    "/api/usage?by=model",
    "/api/search?q=shop",
    "/api/runs",
    "/api/projects",
    "/api/agents",
    "/api/models",
    "/api/diagnostics",
    "/api/status",
)


class Answer(NamedTuple):
    """What a server sent."""

    method: str
    path: str
    status: int
    text: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TypeScript project with the types of our description."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "openapi.json").write_text(json.dumps(description()))
    run(folder, "openapi-typescript", "openapi.json", "-o", "api.ts")
    return folder


def run(folder: Path, program: str, *arguments: str) -> None:
    command = [str(folder / "node_modules" / ".bin" / program), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def compile(folder: Path, file: str) -> str:
    """What the compiler finds wrong with a file; nothing if it compiles."""
    command = [str(COMPILER), *STRICT, *MODULES, file]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (done.returncode == 0) == (not done.stdout)
    return done.stdout


@pytest.fixture(scope="module")
def library_answers(tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    """What a server answers of a store with one of everything."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "home").mkdir()
    write_history(folder / "home")
    store = folder / "turnlog.db"
    read_home(store, folder / "home")
    save(store, ended(new_run("command", agent="codex", command=("codex", "exec", "hi")), 0))
    with TestClient(create_app(store), base_url="http://127.0.0.1:8765") as client:
        answers = [(path, client.get(path)) for path in ADDRESSES]
    return [Answer("GET", path.partition("?")[0], answer.status_code, answer.text) for path, answer in answers]


def literals(answers: list[Answer]) -> str:
    """TypeScript in which each answer is a value of its type: a field that is not known is an error too."""
    lines = ['import type { paths } from "./api";']
    for number, answer in enumerate(answers):
        responses = f'paths["{address_of(answer.path)}"]["{answer.method.lower()}"]["responses"]'
        status = str(answer.status) if answer.status < 300 else '"default"'
        lines.append(f'export const a{number}: {responses}[{status}]["content"]["application/json"] = {answer.text};')
    return "\n".join(lines)


def test_a_client_that_knows_only_the_types_reads_and_writes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-C14, R-C15, R-C16, R-C17: it lists sessions, reads windows, creates a session, messages and a tool call."""
    shutil.copy(FOLDER / "api_client.ts", folder)
    assert compile(folder, "api_client.ts") == ""
    shutil.copytree(LOG, tmp_path / "home")
    with serving(tmp_path / "home", tmp_path / "data") as address:
        command = ["node", "api_client.js", address, TOKEN]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    answers = [Answer(**answer) for answer in seen.pop("answers")]
    log_id = "claude-code:aaaaaaaa-0000-4000-8000-000000000001"
    assert set(seen.pop("ids")) == {"ts-bot:1", log_id}
    windows = seen.pop("windows")
    assert "Where is the hat?" in windows
    assert "I look. <tool-call>" in windows
    assert len(windows) > 3
    assert seen == {"title": "Typed", "ticket": 5, "calls": ["search input-available"], "refused": "not_found"}
    for answer in answers:
        check_response(answer.method, answer.path, answer.status, answer.text.encode())
    (folder / "answers_of_the_client.ts").write_text(literals(answers))
    assert compile(folder, "answers_of_the_client.ts") == ""


def test_every_answer_is_a_value_of_its_type(folder: Path, library_answers: list[Answer]) -> None:
    """R-C17."""
    (folder / "answers.ts").write_text(literals(library_answers))
    assert compile(folder, "answers.ts") == ""
    for answer in library_answers:
        check_response(answer.method, answer.path, answer.status, answer.text.encode())


def test_they_are_only_because_what_may_be_missing_is_optional(
    folder: Path, library_answers: list[Answer], tmp_path: Path
) -> None:
    """R-C17: without the `?` of the types, the same answers do not compile."""
    types = (folder / "api.ts").read_text()
    schemas, rest = types[types.index("export interface components") :], types[: types.index("export interface comp")]
    for name in ("node_modules", "package.json"):
        (tmp_path / name).symlink_to(folder / name)
    (tmp_path / "answers.ts").write_text(literals(library_answers))
    (tmp_path / "api.ts").write_text(rest + re.sub(r"(?m)^( {12}\w+)\?:", r"\1:", schemas))
    problems = compile(tmp_path, "answers.ts")
    assert "TS2739" in problems or "TS2740" in problems  # is missing the following properties
    assert {"title", "usage", "created_at"} <= set(re.findall(r"\w+", problems))
