"""What the server says of itself: complete, closed in itself, and no page that loads from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.testclient import TestClient

from turnlog import server
from turnlog.server import create_app
from turnlog.server.openapi import BODIES
from turnlog.server.routes.router import add_routes, api_router

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "http-api.md"

ADDRESSES = {
    "/api/insights",
    "/api/sign-in",
    "/api/sign-in/links",
    "/api/agents",
    "/api/blobs/{sha256}",
    "/api/diagnostics",
    "/api/events",
    "/api/hooks/{agent}",
    "/api/files",
    "/api/files/touched",
    "/api/files/lines",
    "/api/handoffs",
    "/api/messages/{message_id}",
    "/api/messages/{message_id}/raw",
    "/api/models",
    "/api/parts/{part_id}",
    "/api/projects",
    "/api/runs",
    "/api/runs/{run_id}",
    "/api/runs/{run_id}/messages",
    "/api/search",
    "/api/sessions",
    "/api/sessions/{session_id}",
    "/api/sessions/{session_id}/chat/stream",
    "/api/sessions/{session_id}/commits",
    "/api/sessions/{session_id}/events",
    "/api/sessions/{session_id}/events/{position}",
    "/api/sessions/{session_id}/export",
    "/api/sessions/{session_id}/forget",
    "/api/sessions/{session_id}/files",
    "/api/sessions/{session_id}/handoff",
    "/api/sessions/{session_id}/messages",
    "/api/sessions/{session_id}/outline",
    "/api/sessions/{session_id}/context",
    "/api/sessions/{session_id}/ownership",
    "/api/sessions/{session_id}/prompt",
    "/api/sessions/{session_id}/prompt/answer",
    "/api/sessions/{session_id}/replay",
    "/api/sessions/{session_id}/spills/{name}",
    "/api/sessions/{session_id}/tool-calls",
    "/api/sessions/{session_id}/ui-messages",
    "/api/sessions/{session_id}/window",
    "/api/status",
    "/api/tasks",
    "/api/tasks/{task_id}",
    "/api/tool-calls",
    "/api/tools",
    "/api/usage",
    "/api/usage/comparison",
}


@pytest.fixture(scope="module")
def described(library: Path) -> dict[str, Any]:
    app = create_app(library)
    try:
        return app.openapi()
    finally:
        app.state.context.close()


def test_every_address_is_described(described: dict[str, Any]) -> None:
    """R-C16, R-S40."""
    assert set(described["paths"]) == ADDRESSES


def test_the_docs_name_every_address(described: dict[str, Any]) -> None:
    page = DOCS.read_text()
    documented = {
        re.sub(r"\{.*?\}", "{}", address)
        for address in re.findall(r"`(?:GET|PATCH|POST|PUT|DELETE) (/api/[^`?\s]*)`", page)
    }
    assert documented == {re.sub(r"\{.*?\}", "{}", address) for address in described["paths"]}


def test_the_docs_name_every_kind_of_error() -> None:
    code = "".join(file.read_text() for file in Path(server.__file__).parent.rglob("*.py"))
    kinds = set(re.findall(r'\b[45]\d\d(?:,|:)\s+"(\w+)"', code))
    assert {"busy", "forbidden", "internal", "not_found", "too_large", "wrong_host"} <= kinds
    listed = re.search(r"interface ErrorResponse \{.*?\n\}", DOCS.read_text(), re.DOTALL)
    assert listed
    assert kinds - set(re.findall(r'[:|] "(\w+)"', listed[0])) == set()


def documented_interfaces() -> dict[str, set[str]]:
    """Interface -> its fields, of the TypeScript in the docs; what it extends is among them."""
    code = re.sub(r"//.*|/\*.*?\*/", "", "\n".join(re.findall(r"```ts\n(.*?)```", DOCS.read_text(), re.DOTALL)))
    declarations = list(re.finditer(r"interface (\w+)(?: extends (\w+))? \{", code))
    own = {each[1]: set(re.findall(r"(\w+)\??:", outermost(code[each.end() :]))) for each in declarations}
    return {each[1]: own[each[1]] | own.get(each[2], set()) for each in declarations}


def outermost(code: str) -> str:
    """The body of a block up to its end, without the blocks inside it."""
    kept, depth = "", 0
    for character in code:
        depth += (character in "{[") - (character in "]}")
        if depth < 0:
            return kept
        kept += character if depth == 0 else ""
    return kept


def test_the_docs_name_every_field(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    interfaces = documented_interfaces()
    assert len(interfaces) > 20
    [parts] = re.findall(r"^type Part = (.*);$", DOCS.read_text(), re.MULTILINE)
    [of_every_part] = re.findall(r"// Each part may also have: (.*)", DOCS.read_text())
    of_parts = set(re.findall(r"(\w+)\?:", of_every_part))
    # A session is only ever sent with its annotations.
    del interfaces["Session"]
    for name, fields in interfaces.items():
        assert set(schemas[name]["properties"]) == fields | (of_parts if name in parts.split(" | ") else set()), name


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(described)))
    assert names <= set(described["components"]["schemas"])
    assert {body.__name__ for body in BODIES} <= names


def test_responses_and_errors_are_described(described: dict[str, Any]) -> None:
    for path, methods in described["paths"].items():
        for operation in methods.values():
            responses = dict(operation["responses"])
            if set(responses) == {"204", "default"}:
                continue  # nothing is answered
            responses.pop("204", None)
            if "200" in responses:
                responses.pop("201", None)
            success = "202" if path.startswith("/api/hooks/") else "201" if "201" in responses else "200"
            assert set(responses) == {success, "default"}, path
            contents = next(iter(responses.values()))["content"].values()
            assert all(content["schema"] for content in contents), path
            error = responses["default"]["content"]["application/json"]["schema"]
            assert error == {"$ref": "#/components/schemas/ErrorResponse"}


def test_parameters_have_types_and_limits(described: dict[str, Any]) -> None:
    parameters = {item["name"]: item for item in described["paths"]["/api/sessions"]["get"]["parameters"]}
    assert parameters["limit"]["schema"]["maximum"] == 200
    assert parameters["limit"]["schema"]["default"] == 50
    assert set(parameters["sort"]["schema"]["enum"]) == {"updated", "created", "cost", "tokens", "messages"}
    assert not parameters["agent"]["required"]
    assert "since" in parameters


def test_the_model_is_described_as_it_is_written(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    kinds = {"TextPart", "ReasoningPart", "ToolCallPart", "FilePart", "SourceUrlPart", "UnknownPart", "DataPart"}
    assert kinds <= set(schemas)
    assert schemas["TextPart"]["properties"]["type"]["enum"] == ["text"]
    assert not [name for schema in schemas.values() for name in schema.get("properties", {}) if "extra" in name]
    assert "additionalProperties" not in schemas["SessionItem"]
    assert set(schemas["SessionItem"]["required"]) == {"id", "agent", "external_id"}


def test_what_may_be_missing_is_said_as_generators_read_it(described: dict[str, Any]) -> None:
    """R-C16, R-C17: they take a field with a default for one that is always there, and `| null` for a null."""
    schemas = described["components"]["schemas"]
    for name, schema in schemas.items():
        optional = set(schema.get("properties", {})) - set(schema.get("required", ()))
        assert not [field for field in optional if "default" in schema["properties"][field]], name
    assert schemas["SessionItem"]["properties"]["title"]["type"] == "string"
    assert "title" not in schemas["SessionItem"]["required"]
    assert {"type": "null"} in schemas["SessionBody"]["properties"]["title"]["anyOf"]
    assert schemas["SessionResponse"]["properties"]["parent"]["anyOf"][-1] == {"type": "null"}


def test_a_token_is_how_clients_prove_who_they_are(described: dict[str, Any]) -> None:
    """R-C16."""
    assert described["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    assert described["security"] == [{"token": []}, {}]


def test_no_address_is_another_host(described: dict[str, Any]) -> None:
    assert "servers" not in described
    assert not re.findall(r"https?://(?!json-schema\.org)", json.dumps(described))


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/docs/oauth2-redirect"])
def test_pages_that_load_scripts_from_elsewhere_are_not_there(client: TestClient, path: str) -> None:
    assert "cdn" not in client.get(path).text


CLIENT_NAMES = {
    "SessionItem": {"id", "external_id", "agent", "title", "cwd", "git_branch", "created_at", "updated_at"},
    "Message": {"id", "role", "parts", "model", "usage", "created_at"},
    "Usage": {"input", "output", "cache_read", "cache_write"},
    "ToolCallPart": {"tool_call_id", "tool_name", "input", "results", "state", "started_at"},
}
"""What clients in other languages are written against."""


def generated(schemas: dict[str, Any], name: str) -> type[msgspec.Struct]:
    """A client's type, made of the schema alone: it takes no field that the schema does not know, and misses none."""
    schema = schemas[name]
    required = set(schema.get("required", ()))
    fields = [(field, Any) if field in required else (field, Any, None) for field in schema["properties"]]
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def test_a_client_is_generated_from_the_schemas(client: TestClient, described: dict[str, Any]) -> None:
    """R-C17: session, message, usage and tool call have these names, and every answer is read by what says so."""
    schemas = described["components"]["schemas"]
    types = {name: generated(schemas, name) for name in CLIENT_NAMES}
    for name, names in CLIENT_NAMES.items():
        assert names <= set(schemas[name]["properties"])
    sessions = client.get("/api/sessions").json()["items"]
    windows = [client.get(f"/api/sessions/{session['id']}/window").json() for session in sessions]
    messages = [message for window in windows for message in window["items"]]
    calls = [part for message in messages for part in message.get("parts", ()) if part["type"] == "tool-call"]
    usages = [message["usage"] for message in messages if "usage" in message]
    found = {"SessionItem": sessions, "Message": messages, "Usage": usages, "ToolCallPart": calls}
    for name, values in found.items():
        assert values
        for value in values:
            msgspec.convert(value, types[name])


def test_vocabularies_are_strings(described: dict[str, Any]) -> None:
    """R-C17: roles, states and kinds are words, so that a client's enumeration has its cases by their names."""
    schemas = described["components"]["schemas"]
    for name, field in (("Message", "role"), ("ToolCallPart", "state"), ("ToolCallPart", "kind")):
        words = vocabulary(schemas, schemas[name]["properties"][field])
        assert len(words) > 1
        assert all(isinstance(word, str) for word in words)


def vocabulary(schemas: dict[str, Any], schema: dict[str, Any]) -> list[Any]:
    if "$ref" in schema:
        return vocabulary(schemas, schemas[schema["$ref"].rpartition("/")[2]])
    return schema["enum"]


def test_the_server_describes_itself_as_the_library_does(described: dict[str, Any], library: Path) -> None:
    """`serve` imports the framework in its own way, in which its models are completed late."""
    code = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from turnlog.server.web_framework import importing_web_framework\n"
        "with importing_web_framework():\n"
        "    from turnlog.server import create_app\n"
        "from fastapi.openapi.models import OpenAPI\n"
        "from pydantic import BaseModel\n"
        "assert not OpenAPI.__pydantic_complete__\n"
        "assert type('Own', (BaseModel,), {}).__pydantic_complete__\n"
        "print(json.dumps(create_app(Path(sys.argv[1])).openapi()))\n"
    )
    said = subprocess.run([sys.executable, "-P", "-c", code, str(library)], check=True, capture_output=True, text=True)
    assert json.loads(said.stdout) == json.loads(json.dumps(described))


def test_a_route_is_completed_when_it_is_asked_first(library: Path) -> None:
    """In a process of its own, because the routes are the same in every application."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from starlette.testclient import TestClient\n"
        "from turnlog.server import create_app\n"
        "from turnlog.server.routes.router import LateRoute\n"
        "app = create_app(Path(sys.argv[1]))\n"
        "routes = [route for route in app.router.routes if isinstance(route, LateRoute)]\n"
        "complete = lambda: [route.path for route in routes if 'dependant' in vars(route)]\n"
        "assert complete() == [], complete()\n"
        "with TestClient(app, base_url='http://127.0.0.1:8765') as client:\n"
        "    assert client.get('/api/agents').status_code == 200\n"
        "    assert client.post('/api/usage').status_code == 405\n"
        "    assert complete() == ['/api/agents'], complete()\n"
        "    assert client.get('/api/usage?by=no').status_code == 422\n"
        "    assert client.get('/api/usage').status_code == 200\n"
        "assert complete() == ['/api/usage', '/api/agents'], complete()\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code, str(library)], check=True)


def test_a_route_that_could_not_be_completed_is_completed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    router = api_router()

    @router.get("/number")
    def number(value: int) -> Response:
        return Response(str(value))

    def no_descriptors(*_: Any, **__: Any) -> None:
        raise OSError(24, "Too many open files")

    app = FastAPI()
    add_routes(app, [router])
    client = TestClient(app)
    with monkeypatch.context() as patch:
        patch.setattr(APIRoute, "__init__", no_descriptors)
        for _ in range(2):
            with pytest.raises(OSError, match="Too many open files"):
                client.get("/api/number?value=3")
    assert client.get("/api/number?value=3").text == "3"
