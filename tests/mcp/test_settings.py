"""turnlog's server comes into settings and out of them again, and everything else stays byte for byte."""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cli_runner import Command, call
from support.profiles import examples
from support.settings_places import places_on
from support.settings_texts import texts
from turnlog.agent_settings.jsonc import parse, plain
from turnlog.agents import agents_with_mcp
from turnlog.errors import ConflictError, FormatError, SourceError
from turnlog.mcp.settings import SERVER, carry_out, plan_install, plan_remove, server_command

AGENTS = agents_with_mcp()
IN_JSON = [
    word
    for word, agent in AGENTS.items()
    if agent.mcp is not None and agent.mcp.form == "json" and agent.mcp.project_file is not None
]
COMMAND = server_command()

PLACES = places_on("mcp.md")

TOMLS = {
    "empty": "",
    "one key": 'model = "gpt-5.5"\n',
    "no newline at the end": 'model = "gpt-5.5"',
    "Windows": 'model = "gpt-5.5"\r\n[tui]\r\ntheme = "x"\r\n',
    "other servers": '[mcp_servers.docs]\ncommand = "docs"\nargs = [\n  "[a]",\n]\n\n'
    '# mine\n[mcp_servers.docs.env]\nA = "1"\n',
    "a table at the end": "[projects.\"/work\"]\ntrust_level = 'trusted'\n\n\n",
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "data"


@pytest.fixture
def run() -> Command:
    """Call the command with these arguments; its output is no terminal's."""
    return call


def place(home: Path, word: str, text: str | None = None) -> Path:
    path = home / PLACES[word]
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return path


def install(word: str, data: Path, project: Path | None = None, command: list[str] = COMMAND) -> None:
    carry_out(plan_install(AGENTS[word], command, data, project), data)


def remove(word: str, data: Path, project: Path | None = None) -> None:
    carry_out(plan_remove(AGENTS[word], data, project), data)


def state(word: str, data: Path) -> str:
    return plan_install(AGENTS[word], COMMAND, data).state


def server(word: str, text: str) -> dict[str, Any]:
    """turnlog's server in the settings of an agent."""
    described = AGENTS[word].mcp
    assert described is not None
    found: Any = plain(parse(text)) if described.form == "json" else tomllib.loads(text)
    servers = found[described.servers]
    if described.form == "toml-list":
        return next(each for each in servers if each["name"] == SERVER)
    return servers[SERVER]


def test_each_agent_gets_the_form_that_it_reads(home: Path, data: Path) -> None:
    for word in PLACES:
        install(word, data)
    found = {word: server(word, place(home, word).read_text()) for word in PLACES}
    arguments = ["-I", "-m", "turnlog", "mcp"]
    usual = {"command": sys.executable, "args": arguments}
    local = {"type": "local", "enabled": True, "command": [sys.executable, *arguments]}
    others = {
        "claude": {"type": "stdio", **usual},
        "droid": {"type": "stdio", **usual},
        "copilot": {"type": "local", "tools": ["*"], **usual},
        "vibe": {"name": "turnlog", "transport": "stdio", **usual},
        "opencode": local,
        "kilo": local,
    }
    assert found == {word: others.get(word, usual) for word in PLACES}
    assert others.keys() < PLACES.keys()
    for word in PLACES:
        remove(word, data)
    assert [path for path in home.rglob("*") if path.is_file()] == []


@settings(max_examples=examples(60))
@given(text=texts(strict=False), word=st.sampled_from(IN_JSON))
def test_any_settings_come_back_byte_for_byte(text: str, word: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project, data = Path(folder) / "project", Path(folder) / "data"
        described = AGENTS[word].mcp
        assert described is not None
        assert described.project_file is not None
        path = project / described.project_file
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
        install(word, data, project)
        changed: Any = plain(parse(path.read_bytes().decode()))
        assert changed[described.servers][SERVER]
        install(word, data, project)
        remove(word, data, project)
        assert path.read_bytes().decode() == text


@pytest.mark.parametrize("name", TOMLS)
@pytest.mark.parametrize("is_known", [True, False])
def test_toml_comes_back(name: str, is_known: bool, home: Path, data: Path) -> None:
    path = place(home, "codex", TOMLS[name])
    install("codex", data)
    assert server("codex", path.read_text())["args"][-1] == "mcp"
    assert state("codex", data) == "installed"
    if not is_known:
        (data / "mcp-installed.json").unlink()
        path.write_bytes(path.read_bytes() + b"\n[later]\na = 1\n")
    remove("codex", data)
    if is_known:
        assert path.read_bytes() == TOMLS[name].encode()
    else:
        assert tomllib.loads(path.read_bytes().decode()) == tomllib.loads(TOMLS[name]) | {"later": {"a": 1}}


LISTS = {
    **{name: text for name, text in TOMLS.items() if "mcp_servers" not in text},
    "other servers": '[[mcp_servers]]\nname = "docs"\ntransport = "stdio"\ncommand = "docs"\n\n'
    '[[mcp_servers]]\nname = "far"\ntransport = "http"\nurl = "https://a.invalid"\n\n'
    '[mcp_servers.auth]\ntype = "static"\n\n[[models]]\nname = "small"\n',
    "an empty list": 'active_model = "small"\nmcp_servers = []\ntheme = "x"\n\n[[models]]\nname = "small"\n',
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_list_of_servers_comes_back(name: str, is_known: bool, home: Path, data: Path) -> None:
    path = place(home, "vibe", LISTS[name])
    install("vibe", data)
    assert server("vibe", path.read_text())["args"][-1] == "mcp"
    assert state("vibe", data) == "installed"
    if not is_known:
        (data / "mcp-installed.json").unlink()
        path.write_bytes(path.read_bytes() + b"\n[[mcp_servers]]\nname = 'later'\n[mcp_servers.env]\nA = '1'\n")
    remove("vibe", data)
    if is_known:
        assert path.read_bytes() == LISTS[name].encode()
        return
    before = tomllib.loads(LISTS[name])
    servers = [*before.pop("mcp_servers", []), {"name": "later", "env": {"A": "1"}}]
    assert tomllib.loads(path.read_bytes().decode()) == before | {"mcp_servers": servers}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[mcp_servers.docs]\ncommand = "docs"\n', "a list of tables"),
        ('[[mcp_servers]]\nname = "a"\n[[mcp_servers]]\nname = "a"\n', "two servers are called 'a'"),
        ('[[mcp_servers]]\nname = "turnlog"\ncommand = "other"\n', "another server is called 'turnlog'"),
        ('mcp_servers = [{name = "a", transport = "http"}]\n', "no TOML"),
    ],
)
def test_a_list_that_cannot_be_added_to_is_refused(text: str, reason: str, home: Path, data: Path) -> None:
    path = place(home, "vibe", text)
    with pytest.raises(SourceError, match=reason):
        install("vibe", data)
    assert path.read_text() == text


def test_projects_without_settings_of_their_own_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="reads no such settings in a project"):
        install("openhands", data, tmp_path)


@pytest.mark.parametrize("word", ["codex", "vibe"])
def test_what_somebody_wrote_behind_our_table_stays(word: str, home: Path, data: Path) -> None:
    before, later = '# mine\u2028[a]\nmodel = "x"\n', '\n# how it looks\n\n[tui]\ntheme = "x"\n# the end\n'
    path = place(home, word, before)
    carry_out(plan_install(AGENTS[word], COMMAND, data), data)
    path.write_bytes(path.read_bytes() + later.encode())
    carry_out(plan_remove(AGENTS[word], data), data)
    assert path.read_text().replace("\n\n\n", "\n\n") == f"{before}{later}"


def test_of_a_repeated_key_the_last_counts(home: Path, data: Path) -> None:
    text = '{"mcpServers": {"old": {}}, "a": 1, "mcpServers": {"new": {}}}'
    path = place(home, "claude", text)
    carry_out(plan_install(AGENTS["claude"], COMMAND, data), data)
    assert set(json.loads(path.read_text())["mcpServers"]) == {"new", SERVER}
    path.write_bytes(path.read_bytes() + b"\n")
    carry_out(plan_remove(AGENTS["claude"], data), data)
    assert path.read_text() == text + "\n"


def test_what_was_changed_since_is_kept(home: Path, data: Path) -> None:
    path = place(home, "gemini", '{"mcpServers": {"docs": {"command": "docs"}}, "ui": {}}')
    install("gemini", data)
    path.write_text("// changed since\n" + path.read_text())
    remove("gemini", data)
    left = path.read_text()
    assert left.startswith("// changed since\n")
    assert plain(parse(left)) == {"mcpServers": {"docs": {"command": "docs"}}, "ui": {}}


def test_a_server_that_was_added_by_hand_is_renewed(home: Path, data: Path) -> None:
    path = place(home, "claude", '{"mcpServers": {"turnlog": {"command": "turnlog", "args": ["mcp"]}}}')
    assert state("claude", data) == "outdated"
    install("claude", data)
    assert server("claude", path.read_text())["command"] == sys.executable
    assert state("claude", data) == "installed"


@pytest.mark.parametrize(
    ("word", "text", "reason"),
    [
        ("claude", '{"mcpServers": {\n"turnlog": {"command": "another"}}}', "another server is called 'turnlog'"),
        ("claude", '{"mcpServers": []}', "`mcpServers` must be an object"),
        ("claude", "[]", "the settings must be an object"),
        ("claude", '{"a": ', "JSON|ends|value"),
        ("codex", "model = \n", "no TOML"),
        ("codex", "mcp_servers = 5\n", "`mcp_servers` must be a table"),
        ("codex", 'mcp_servers = {docs = {command = "docs"}}\n', "no TOML"),
        ("codex", '[mcp_servers.turnlog]\ncommand = "another"\n', "another server is called 'turnlog'"),
    ],
)
def test_settings_that_cannot_be_changed_for_certain_are_refused(
    word: str, text: str, reason: str, home: Path, data: Path
) -> None:
    path = place(home, word, text)
    with pytest.raises(FormatError, match=reason) as refused:
        plan_install(AGENTS[word], COMMAND, data)
    assert refused.value.path == path.resolve()
    assert path.read_text() == text


def test_text_that_is_not_utf_8_is_refused(home: Path, data: Path) -> None:
    place(home, "codex").parent.mkdir()
    place(home, "codex").write_bytes(b'a = "\xff"\n')
    with pytest.raises(SourceError, match="not UTF-8"):
        plan_install(AGENTS["codex"], COMMAND, data)


def test_a_change_in_the_meantime_is_not_overwritten(home: Path, data: Path) -> None:
    path = place(home, "codex", "a = 1\n")
    plan = plan_install(AGENTS["codex"], COMMAND, data)
    path.write_text("a = 2\n")
    with pytest.raises(ConflictError):
        carry_out(plan, data)
    assert path.read_text() == "a = 2\n"


def test_the_command_shows_then_writes_then_undoes(run: Command, home: Path) -> None:
    shown = run("mcp", "install", "claude", "codex")
    assert shown.exit_code == 0
    assert "+++ " in shown.stdout
    assert shown.stdout.endswith("Nothing was changed: --yes does it.\n")
    assert not place(home, "claude").exists()
    done = json.loads(run("mcp", "install", "claude", "codex", "--yes", "--json").stdout)["servers"]
    assert [(each["agent"], each["changed"], each["problem"]) for each in done] == [
        ("claude", True, None),
        ("codex", True, None),
    ]
    states = [line.partition(" (")[0] for line in run("mcp", "status").stdout.splitlines()]
    assert {"Claude Code: installed", "Codex: installed"} <= set(states)
    assert [state.partition(": ")[2] for state in states].count("server not added") == len(AGENTS) - 2
    assert run("mcp", "remove", "claude", "codex", "--yes").exit_code == 0
    assert not place(home, "claude").exists()


def test_another_store_is_named_in_the_command(run: Command, home: Path, tmp_path: Path) -> None:
    store = tmp_path / "other" / "turnlog.db"
    run("mcp", "install", "gemini", "--yes", "--store", str(store))
    assert server("gemini", place(home, "gemini").read_text())["args"][-2:] == ["--store", str(store)]


def test_an_agent_without_such_settings_is_refused(run: Command) -> None:
    refused = run("mcp", "install", "pi")
    assert refused.exit_code == 2
    assert "claude" in refused.stderr
