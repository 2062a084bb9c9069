"""Client models made of the schema of the API: TypeScript, used against a running hub, and Swift (R-C17)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from support.hubs import Hub, listening, save_session
from support.plain_store import read_home
from support.server_history import write_history
from support.swift_reader import SwiftTypes, WrongValueError
from turnlog.hub.client_models import SWIFT, models
from turnlog.server import create_app

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "clients"
COMPILER = ROOT / "web/node_modules/.bin/tsc"

ASKED_OF_A_HUB = """
import { TurnlogClient, TurnlogError } from "./client.js";

declare const process: { argv: [string, string, string, string] };

const [, , base, token] = process.argv;
const hub = new TurnlogClient(base, token);
const failure = async (asked: Promise<unknown>) => {
  try {
    await asked;
  } catch (error) {
    if (error instanceof TurnlogError) return [error.status, error.type, ...error.detail.map((each) => each.field)];
  }
  return null;
};
const task = await hub.createTask({ id: "T/1", name: "Till" });
const made = await hub.saveSession({ external_id: "a b", title: "First", ownership: { task: task.id } });
await hub.saveMessages(made.id, { messages: [
  { id: "m1", role: "user", parts: [{ type: "text", text: "xylophone" }] },
  { id: "m2", role: "assistant", model: "m", usage: { input: 3, output: 4 }, parts: [{ type: "text", text: "yes" }] },
] });
const called = await hub.saveToolCall(made.id, {
  message_id: "m2", call: { type: "tool-call", tool_call_id: "c1", tool_name: "Bash", input: { command: "ls" } },
});
for (const name of ["b", "c", "d"]) await hub.saveSession({ external_id: name, title: name });
const all: string[] = [];
for await (const session of hub.allSessions({ limit: 2 })) all.push(session.id);
const found = {
  me: (await hub.me()).user?.name,
  all: all.sort(),
  task: (await hub.sessions({ task: "T/1" })).items.map((each) => each.title),
  counted: (await hub.tasks()).items.map((each) => [each.id, each.name, each.sessions]),
  renamed: (await hub.renameTask("T/1", "Shop")).name,
  window: (await hub.window(made.id)).items.map((message) => message.parts?.length),
  calls: (await hub.toolCalls({ session: made.id })).items.map((each) => each.tool_name),
  parts: called.message.parts?.map((part) => part.type),
  input: (await hub.message("m2")).message.usage?.input,
  hits: (await hub.search("xylophone")).items.length,
  unauthorized: await failure(new TurnlogClient(base, "tlp_wrong").me()),
  missing: await failure(hub.session("turnlog:nobody")),
  conflict: await failure(hub.createTask({ id: "T/1", name: "again" })),
  invalid: await failure(hub.createTask({ name: "" })),
  gone: await hub.deleteSession(made.id) ?? null,
  left: (await hub.sessions()).total,
};
await hub.deleteTask("T/1");
console.log(JSON.stringify({ ...found, tasks: (await hub.tasks()).items.length }));
"""


def test_the_models_are_those_of_this_version() -> None:
    for name, text in models().items():
        assert (CLIENTS / name).read_text() == text, "run `make schema`"


def test_the_page_uses_the_same_types() -> None:
    """Every declaration of the page is one of the client's."""

    def declarations(path: Path) -> set[str]:
        return set(re.findall(r"^export (?:interface \w+ \{.*?^\}|type \w+ = [^\n]*)$", path.read_text(), re.S | re.M))

    page = declarations(ROOT / "web/src/api/schema.ts") | declarations(ROOT / "web/src/hub/schema.ts")
    assert len(page) > 100
    other = page - declarations(CLIENTS / "typescript/src/models.ts")
    assert not other, sorted(each.splitlines()[0] for each in other)


def test_the_client_works_against_a_running_hub(new_hub: Hub, tmp_path: Path) -> None:
    """R-C17."""
    ana = new_hub.browser("Ana")
    token = ana.post("/hub/v1/tokens", json={"name": "node", "scopes": ["read", "push"]}).json()["token"]
    shutil.copytree(CLIENTS / "typescript", tmp_path / "client", ignore=shutil.ignore_patterns("node_modules", "dist"))
    folder = tmp_path / "client"
    (folder / "src/ask.ts").write_text(ASKED_OF_A_HUB)
    built = subprocess.run([COMPILER, "-p", "."], cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout
    with listening(new_hub) as address:
        done = subprocess.run(
            ["node", "dist/ask.js", address, token], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "me": "Ana",
        "all": ["turnlog:a b", "turnlog:b", "turnlog:c", "turnlog:d"],
        "task": ["First"],
        "counted": [["T/1", "Till", 1]],
        "renamed": "Shop",
        "window": [1, 2],
        "calls": ["Bash"],
        "parts": ["text", "tool-call"],
        "input": 3,
        "hits": 1,
        "unauthorized": [401, "unauthorized"],
        "missing": [404, "not_found"],
        "conflict": [409, "conflict"],
        "invalid": [422, "invalid_parameter", "name"],
        "gone": None,
        "left": 3,
        "tasks": 0,
    }


# -- Swift


@pytest.fixture(scope="module")
def swift() -> SwiftTypes:
    return SwiftTypes((CLIENTS / SWIFT).read_text())


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("library")
    (folder / "home").mkdir()
    write_history(folder / "home")
    read_home(folder / "turnlog.db", folder / "home")
    app = create_app(folder / "turnlog.db")
    with TestClient(app, "http://127.0.0.1:8765") as found:
        yield found


def name_of(app: Any, method: str, path: str, status: int) -> str | None:
    """The schema that the API says this answer has."""
    for pattern, methods in app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path.partition("?")[0]) and method.lower() in methods:
            answers = methods[method.lower()]["responses"]
            content = answers.get(str(status), answers["default"]).get("content", {})
            reference: str | None = content.get("application/json", {}).get("schema", {}).get("$ref")
            return None if reference is None else reference.rpartition("/")[2]
    raise AssertionError(f"nothing is said of {method} {path}")


LOCAL = (
    *("/api/sessions", "/api/sessions/plain:main", "/api/sessions/plain:main/outline", "/api/messages/m2"),
    *("/api/sessions/plain:main/window", "/api/sessions/plain:main/replay", "/api/sessions/plain:main/files"),
    *("/api/sessions/plain:main/ui-messages", "/api/messages/m2/raw", "/api/tool-calls", "/api/tools"),
    *("/api/usage", "/api/usage?by=model&then_by=day", "/api/search?q=the", "/api/search?q=the&flat=true", "/api/runs"),
    *("/api/projects", "/api/agents", "/api/models", "/api/diagnostics", "/api/status", "/api/tasks", "/api/insights"),
    *("/api/sessions/nobody", "/api/sessions?limit=x", "/api/sessions/plain:main/context", "/api/files/touched"),
)

OF_A_HUB = (
    *("/hub/v1/me", "/hub/v1/team", "/hub/v1/members", "/hub/v1/tokens", "/hub/v1/machines", "/hub/v1/audit"),
    *("/hub/v1/audit/team", "/hub/v1/sessions/turnlog:a/sharing", "/hub/v1/usage", "/hub/v1/sign-in", "/api/tasks"),
    *("/api/sessions", "/api/sessions/turnlog:a", "/api/sessions/turnlog:a/window", "/api/messages/a-2", "/api/usage"),
    *("/api/tasks/T-1", "/api/tool-calls", "/api/sessions/turnlog:nobody", "/api/search?q=xylophone"),
)


def test_answers_decode_by_the_swift_models(swift: SwiftTypes, local: TestClient, new_hub: Hub) -> None:
    """R-C17."""
    assert {"SessionItem", "Message", "TextPart", "Usage", "ToolCall", "User", "Team", "Task"} <= set(swift.structs)
    owner = new_hub.browser("Ana", "owner")
    save_session(owner, "a", "xylophone", cwd="/work", ownership={"task": "T-1"})
    owner.put("/hub/v1/sessions/turnlog:a/sharing", json={"visibility": "team"})
    owner.post("/hub/v1/sessions/turnlog:a/links", json={"days": 3})
    owner.post("/hub/v1/tokens", json={"name": "x", "scopes": ["read"]})
    decoded = set[str]()
    for client, app, paths in ((local, local.app, LOCAL), (owner, new_hub.app, OF_A_HUB)):
        for path in paths:
            answer = client.get(path)
            name = name_of(app, "GET", path, answer.status_code)
            assert name is not None, path
            swift.decode(answer.json(), name, path)
            decoded.add(name)
    assert len(decoded) > 30
    assert {"SessionPage", "MessageResponse", "ToolCallPage", "Task", "Me", "Members", "ErrorResponse"} <= decoded


@pytest.mark.parametrize(
    ("value", "type"),
    [
        ({"id": "t", "name": None, "sessions": 0}, "Task"),
        ({"id": "t", "name": "n", "sessions": 0.5}, "Task"),
        ({"id": "t", "name": "n", "sessions": 1, "more": 1}, "Task"),
        ({"name": "n", "sessions": 1}, "Task"),
        ([{"type": "text"}], "[Part]"),
        ({"input": True}, "Usage"),
    ],
)
def test_the_reader_refuses_what_swift_refuses(swift: SwiftTypes, value: Any, type: str) -> None:
    with pytest.raises(WrongValueError):
        swift.decode(value, type)
