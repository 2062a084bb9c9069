"""Hooks come into settings and out of them again, and everything else stays byte for byte (R-C21)."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.places import OTHER_KINDS, Kind
from support.profiles import examples
from support.settings_places import places_on
from support.settings_texts import texts
from turnlog.agent_settings.jsonc import parse, plain
from turnlog.agents import agents_with_hooks
from turnlog.errors import ConflictError, SourceError
from turnlog.hooks.settings import carry_out, has_hooks, installed_version, plan_install, plan_remove

HOOKED = agents_with_hooks()
SETTINGS = {word: agent.hooks for word, agent in HOOKED.items() if agent.hooks is not None}
IN_SETTINGS = [
    word for word, hooks in SETTINGS.items() if hooks.plugin is None and hooks.form in ("groups", "handlers")
]
IN_TOML = [word for word, hooks in SETTINGS.items() if hooks.form == "toml-list"]

PLACES = places_on("hooks.md")

MIXED = """\
{
    // what I like
    "model": "opus",
    "hooks": {
        "Stop": [ { "hooks": [ {"type": "command", "command": "say done"} ] } ],   // aloud
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [{ "type": "command", "command": "./check.sh" }],
            },
        ],
        "TomorrowsEvent": []
    } /* all mine */
}"""

KEPT = {
    "nothing": "{}",
    "an empty file": "",
    "blank lines": "\n\n",
    "a blank inside": "{ }\n",
    "one line": '{"model": "opus"}',
    "no blanks": '{"model":"opus","hooks":{"Stop":[]}}',
    "tabs": '{\n\t"a": [1,\n\t\t2]\n}\n',
    "windows": '{\r\n  "a": 1\r\n}\r\n',
    "a mark of its encoding": '\ufeff{\n  "a": 1\n}\n',
    "comments only": "// mine\n{\n  // nothing yet\n}\n",
    "a remark behind": '{\n  "a": 1 // one\n}',
    "a comma behind": '{\n  "a": 1,\n}',
    "both": '{\n  "a": 1, // one\n}',
    "no hooks yet": '{"hooks": {}}',
    "mixed": MIXED,
    "a remark behind, on one line": '{ "theme": "dark", // mine\n}\n',
    "a remark behind in hooks": '{\n  "hooks": { "Stop": [], // a sound\n  }\n}\n',
    "a remark behind a group": '{ "hooks": { "Stop": [ {"hooks": []} // a sound\n ] } }\n',
    "two remarks behind": '{ "a": 1, /* one */ // two\n}\n',
    "a remark before the comma": '{ "a": 1 // one\n , // two\n}\n',
    "remarks, windows": '{ "theme": "dark", // mine\r\n}\r\n',
    "a remark behind an encoding's mark": '\ufeff{ "theme": "dark", // mine\n}',
    "a key twice": '{"hooks": {"Stop": 1}, "a": 1, "hooks": {"Stop": []}}',
}

TOML = """\
# what I like
default_model = "mock"

[[hooks]]   # mine
event = "Stop"
command = "say done"

[providers.mock]
type = "openai"
"""

TOML_KEPT = {
    "an empty file": "",
    "blank lines": "\n\n",
    "no newline at the end": 'a = "1"',
    "windows": 'a = "1"\r\n',
    "comments only": "# mine\n",
    "mixed": TOML,
}


@pytest.fixture(autouse=True)
def claude(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the newest Claude Code be installed."""

    def newest(program: str) -> tuple[int, ...]:
        return (2, 1, 329)

    monkeypatch.setattr("turnlog.hooks.settings.installed_version", newest)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Where the store lies."""
    return tmp_path / "data"


def place(home: Path, word: str, text: str | None = None) -> Path:
    path = home / PLACES[word]
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return path


def install(word: str, data: Path, project: Path | None = None) -> None:
    carry_out(plan_install(HOOKED[word], data, project), data)


def remove(word: str, data: Path, project: Path | None = None) -> None:
    carry_out(plan_remove(HOOKED[word], data, project), data)


def state(word: str, data: Path, project: Path | None = None) -> str:
    return plan_install(HOOKED[word], data, project).state


def events(text: str, word: str = "claude") -> dict[str, list[dict[str, Any]]]:
    """Event -> the handlers of ours."""
    if word in IN_TOML:
        ours = [hook for hook in tomllib.loads(text)["hooks"] if has_hooks(hook["command"])]
        return {hook["event"]: [hook] for hook in ours}
    found: Any = plain(parse(text))
    field = SETTINGS[word].field
    return {
        event: ours
        for event, groups in (found if field is None else found[field]).items()
        if (ours := [each for each in handlers(groups) if has_hooks(each["command"])])
    }


def handlers(groups: Any) -> list[dict[str, Any]]:
    """Those of an event's groups; what is beside the events of a file may be anything."""
    return [each for group in groups for each in group.get("hooks", [group])] if has_hooks(json.dumps(groups)) else []


@pytest.mark.parametrize(
    ("word", "text"),
    [
        *(pytest.param(word, text, id=f"{word}-{name}") for word in IN_SETTINGS for name, text in KEPT.items()),
        *(pytest.param(word, text, id=f"{word}-{name}") for word in IN_TOML for name, text in TOML_KEPT.items()),
    ],
)
def test_settings_come_back_byte_for_byte(word: str, text: str, home: Path, data: Path) -> None:
    path = place(home, word, text)
    install(word, data)
    assert set(events(path.read_text(), word)) == set(SETTINGS[word].events)
    assert state(word, data) == "installed"
    install(word, data)
    assert {len(ours) for ours in events(path.read_text(), word).values()} == {1}
    remove(word, data)
    assert path.read_bytes() == text.encode()
    assert state(word, data) == "absent"
    assert not data.exists() or list(data.iterdir()) == []


@pytest.mark.parametrize("end", ["\r", "\u2028", "\u2029"])
def test_a_comment_that_readers_end_in_different_places_is_refused(end: str, home: Path, data: Path) -> None:
    text = f'{{ "theme": "dark", // mine{end}"a": 1\n}}'
    path = place(home, "claude", text)
    with pytest.raises(SourceError):
        install("claude", data)
    assert path.read_bytes() == text.encode()


@pytest.mark.parametrize("word", IN_SETTINGS)
def test_hooks_in_a_comment_are_not_installed(word: str, home: Path, data: Path) -> None:
    """As a version that did not look at comments left them; also those that the user has put aside."""
    path = place(home, word, "{}")
    install(word, data)
    commented = "".join(f"// {line}\n" for line in path.read_text().split("\n")) + "{}\n"
    path.write_bytes(commented.encode())
    (data / "hooks-installed.json").unlink()
    assert state(word, data) == "absent"
    remove(word, data)
    assert path.read_bytes() == commented.encode()
    install(word, data)
    assert set(events(path.read_text(), word)) == set(SETTINGS[word].events)
    remove(word, data)
    assert path.read_bytes() == commented.encode()


def test_a_repeated_key_is_not_brought_back_to_life(home: Path, data: Path) -> None:
    """Where nothing says which of two lists was ours, to take out the last would make the first count."""
    command = '{"hooks": [{"type": "command", "command": "python turnlog/hooks/send.py"}]}'
    theirs = '{"hooks": [{"type": "command", "command": "say done"}]}'
    text = f'{{"hooks": {{"Stop": [{theirs}], "Stop": [{command}]}}}}'
    path = place(home, "claude", text)
    with pytest.raises(SourceError, match="by hand"):
        remove("claude", data)
    assert path.read_bytes() == text.encode()


@pytest.mark.parametrize("strict", [True, False])
@settings(max_examples=examples(60))
@given(drawn=st.data())
def test_any_settings_come_back_byte_for_byte(strict: bool, drawn: st.DataObject) -> None:
    text = drawn.draw(texts(strict=strict))
    with tempfile.TemporaryDirectory() as folder:
        project, data = Path(folder) / "project", Path(folder) / "data"
        path = project / (SETTINGS["claude"].project_file or "")
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
        install("claude", data, project)
        changed = path.read_bytes().decode()
        assert len(events(changed)) == 11
        if strict:
            assert json.loads(changed) == plain(parse(changed))
        remove("claude", data, project)
        assert path.read_bytes().decode() == text


@pytest.mark.parametrize("journal", [True, False])
def test_other_peoples_hooks_in_toml_stay_where_they_are(journal: bool, home: Path, data: Path) -> None:
    path = place(home, "kimi", TOML)
    install("kimi", data)
    assert tomllib.loads(path.read_text())["hooks"][0] == {"event": "Stop", "command": "say done"}
    path.write_text(path.read_text() + '\n[[hooks]]\nevent = "Stop"\ncommand = "say more"\n')
    if not journal:
        (data / "hooks-installed.json").unlink()
    remove("kimi", data)
    left = path.read_text()
    assert left.startswith(TOML)
    assert [hook["command"] for hook in tomllib.loads(left)["hooks"]] == ["say done", "say more"]


@pytest.mark.parametrize("text", ['hooks = [{event = "Stop", command = "x"}]\n', "hooks = 1\n", "a = \n", "[hooks]\n"])
def test_toml_that_cannot_take_hooks_is_refused(text: str, home: Path, data: Path) -> None:
    path = place(home, "kimi", text)
    with pytest.raises(SourceError, match=rf"^{path}"):
        plan_install(HOOKED["kimi"], data)
    assert path.read_text() == text


def test_what_looks_like_a_hook_inside_of_a_text_is_left_alone(home: Path, data: Path) -> None:
    """The line is that of a value, so cutting it out would change the value."""
    place(home, "kimi", "")
    install("kimi", data)
    ours = place(home, "kimi").read_text()
    text = f"note = '''\n{ours}'''\n"
    path = place(home, "kimi", text)
    with pytest.raises(SourceError, match="do it by hand"):
        plan_remove(HOOKED["kimi"], data)
    assert path.read_text() == text


def test_settings_that_projects_do_not_have_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="in a project"):
        plan_install(HOOKED["kimi"], data, tmp_path)


@settings(max_examples=examples(60))
@given(text=texts(strict=False), journal=st.booleans())
def test_what_was_changed_since_is_kept(text: str, journal: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project, data = Path(folder) / "project", Path(folder) / "data"
        path = project / (SETTINGS["codex"].project_file or "")
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
        install("codex", data, project)
        path.write_bytes(b"// changed since\n" + path.read_bytes() + b" ")
        if not journal:
            (data / "hooks-installed.json").unlink()
        remove("codex", data, project)
        left = path.read_bytes().decode()
        assert left.startswith("// changed since\n")
        assert not has_hooks(left)
        found, before = plain(parse(left)), plain(parse(text))
        if not journal:
            found, before = _without_empty(found), _without_empty(before)
        assert found == before


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """Without a journal nobody knows whether what is empty was there before."""
    hooks = {event: groups for event, groups in value.get("hooks", {}).items() if groups}
    return {**{name: value[name] for name in value if name != "hooks"}, **({"hooks": hooks} if hooks else {})}


@pytest.mark.parametrize("name", ["one line", "tabs", "windows", "a remark behind", "a comma behind", "both", "mixed"])
def test_cutting_the_hooks_out_of_changed_settings_leaves_no_trace(name: str, home: Path, data: Path) -> None:
    path = place(home, "claude", KEPT[name])
    install("claude", data)
    path.write_bytes(path.read_bytes() + b"\n")
    remove("claude", data)
    assert path.read_bytes() == KEPT[name].encode() + b"\n"


@pytest.mark.parametrize(
    ("configured", "later"),
    [
        (None, set[str]()),
        ("no version", set[str]()),
        ("2.0.14 (Claude Code)", set[str]()),
        ("2.1.20 (Claude Code)", {"PermissionRequest", "PostToolUseFailure"}),
        ("2.1.199 (Claude Code)", {"PermissionRequest", "PostToolUseFailure", "StopFailure"}),
        ("2.1.200 (Claude Code)", {"PermissionRequest", "PostToolUseFailure", "StopFailure", "MessageDisplay"}),
        ("3.0.0", {"PermissionRequest", "PostToolUseFailure", "StopFailure", "MessageDisplay"}),
    ],
)
def test_an_older_claude_code_gets_no_event_that_it_does_not_know(
    configured: str | None, later: set[str], home: Path, data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One such event would turn off every hook of the file."""
    monkeypatch.setattr("turnlog.hooks.settings.installed_version", installed_version)
    monkeypatch.setenv("PATH", str(tmp_path))
    if configured is not None:
        program = tmp_path / "claude"
        program.write_text(f"#!/bin/sh\necho '{configured}'\n")
        program.chmod(0o755)
    install("claude", data)
    assert set(events(place(home, "claude").read_text())) == later | {
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Notification", "Stop", "SessionEnd")
    }


def test_a_program_that_hangs_or_cannot_start_has_no_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr("turnlog.hooks.settings._SECONDS", 0.2)
    for name, text in {"slow": "#!/bin/sh\nexec sleep 5\n", "broken": "#!/nowhere\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
        assert installed_version(name) is None


def test_other_hooks_stay_in_their_order(home: Path, data: Path) -> None:
    path = place(home, "claude", MIXED)
    install("claude", data)
    found: Any = plain(parse(path.read_text()))
    assert found["hooks"]["Stop"][0] == {"hooks": [{"type": "command", "command": "say done"}]}
    assert [group.get("matcher") for group in found["hooks"]["PreToolUse"]] == ["Bash", None]
    assert list(found["hooks"])[:3] == ["Stop", "PreToolUse", "TomorrowsEvent"]


BARE = """\
{
  // Droid's own form: events without a field above them
  "PreToolUse": [
    { "matcher": "Execute", "hooks": [{ "type": "command", "command": "/opt/check.sh" }] },
  ],
}
"""


@pytest.mark.parametrize("ending", ["", "// changed since\n"])
def test_events_may_be_all_that_a_file_has(ending: str, home: Path, data: Path) -> None:
    path = place(home, "droid", BARE)
    install("droid", data)
    found: Any = plain(parse(path.read_text()))
    assert found["PreToolUse"][0]["hooks"][0]["command"] == "/opt/check.sh"
    assert set(events(path.read_text(), "droid")) == set(SETTINGS["droid"].events)
    assert "hooks" not in found
    path.write_text(path.read_text() + ending)
    remove("droid", data)
    assert path.read_text() == BARE + ending


def test_a_new_file_has_what_its_agent_wants_besides(home: Path, data: Path) -> None:
    install("copilot", data)
    found: Any = plain(parse(place(home, "copilot").read_text()))
    assert (list(found), found["version"]) == (["version", "hooks"], 1)


@pytest.mark.parametrize("word", PLACES)
def test_a_file_that_was_not_there_goes_again_with_its_folders(word: str, home: Path, data: Path) -> None:
    install(word, data)
    assert place(home, word).is_file()
    remove(word, data)
    assert [path for path in home.rglob("*") if path.is_relative_to(home / PLACES[word].split("/")[0])] == []


def test_a_folder_that_somebody_uses_meanwhile_stays(home: Path, data: Path) -> None:
    install("codex", data)
    (home / ".codex" / "config.toml").write_text("")
    remove("codex", data)
    assert [path.name for path in (home / ".codex").iterdir()] == ["config.toml"]


@pytest.mark.parametrize("word", PLACES)
def test_hooks_of_another_store_are_renewed(word: str, home: Path, data: Path, tmp_path: Path) -> None:
    text = None if word == "opencode" else TOML if word in IN_TOML else MIXED
    path = place(home, word, text)
    install(word, tmp_path / "elsewhere")
    assert state(word, data) == "outdated"
    install(word, data)
    assert (state(word, data), str(tmp_path / "elsewhere") in path.read_text()) == ("installed", False)
    remove(word, data)
    assert (path.read_text() if text else path.exists()) == (text or False)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3),
        ('{\n  "a": [1,\n}', 3),
        ("[]", 1),
        ('"text"', 1),
        ('{\n  "hooks": []\n}', 2),
        ('{"hooks": {\n  "Stop": {}\n}}', 2),
        ('{"a": 1}\n}', 2),
        ("{\"a\": 'x'}", 1),
        ("{" * 300, 1),
        ('{"a": "\\x"}', 1),
        ('{\n"a": 01}', 2),
    ],
)
def test_what_cannot_be_read_for_certain_is_refused(text: str, line: int, home: Path, data: Path) -> None:
    path = place(home, "claude", text)
    with pytest.raises(SourceError, match=rf"^{path}:{line}: "):
        plan_install(HOOKED["claude"], data)
    assert path.read_text() == text


def test_what_is_not_utf_8_is_refused(home: Path, data: Path) -> None:
    path = place(home, "gemini", "")
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(SourceError, match="not UTF-8"):
        plan_install(HOOKED["gemini"], data)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("claude", '{"disableAllHooks": true}'),
        ("gemini", '{"tools": {"enableHooks": false}}'),
        ("gemini", '{"hooksConfig": {"enabled": false}}'),
    ],
)
def test_hooks_that_were_turned_off_are_not_put_in(word: str, text: str, home: Path, data: Path) -> None:
    place(home, word, text)
    with pytest.raises(SourceError, match="turned off here"):
        plan_install(HOOKED[word], data)


def test_a_plugin_of_somebody_else_is_left_alone(home: Path, data: Path) -> None:
    path = place(home, "opencode", "export const Mine = async () => ({})\n")
    with pytest.raises(SourceError, match="another file"):
        plan_install(HOOKED["opencode"], data)
    remove("opencode", data)
    assert path.read_text().startswith("export const Mine")


def test_the_mode_stays_and_a_link_is_followed(home: Path, data: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text('{"a": 1}\n')
    real.chmod(0o640)
    link = place(home, "claude")
    link.parent.mkdir()
    link.symlink_to(real)
    install("claude", data)
    assert (link.is_symlink(), stat.S_IMODE(real.stat().st_mode), has_hooks(real.read_text())) == (True, 0o640, True)
    assert [path.name for path in real.parent.iterdir()] == ["settings.json"]
    remove("claude", data)
    assert real.read_text() == '{"a": 1}\n'


@pytest.mark.parametrize("linked", ["settings.json", "."])
def test_a_link_that_leads_nowhere_is_refused_before_anything_is_made(
    linked: str, home: Path, data: Path, tmp_path: Path
) -> None:
    """C8: neither the settings of an agent nor their folder are made where a link points to."""
    path = place(home, "claude")
    link = path.parent / linked
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="the link leads nowhere: there is no"):
        install("claude", data)
    assert not (tmp_path / "elsewhere").exists()


@contextmanager
def device(path: Path) -> Generator[None]:
    """At the end of a link, which is followed."""
    path.symlink_to("/dev/zero")
    yield


@contextmanager
def folder(path: Path) -> Generator[None]:
    path.mkdir()
    yield


KINDS = {
    **{kind: reason for kind, reason in OTHER_KINDS.items() if reason != "a symbolic link"},
    device: "a device",
    folder: "a folder",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["settings", "journal"])
@pytest.mark.parametrize(("kind", "reason"), KINDS.items())
def test_what_is_no_file_is_refused_at_once(home: Path, data: Path, name: str, kind: Kind, reason: str) -> None:
    """C8: a pipe would keep the command waiting, and a device never end; nothing is made."""
    path = place(home, "claude") if name == "settings" else data / "hooks-installed.json"
    path.parent.mkdir()
    with kind(path):
        for plan in (plan_install, plan_remove):
            with pytest.raises(SourceError, match=f"this is {reason}, not a file"):
                plan(HOOKED["claude"], data)
        assert list(path.parent.iterdir()) == [path]


def test_settings_are_bounded(home: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.agent_settings.changes._MOST_BYTES", 10)
    place(home, "claude", "{         }")
    with pytest.raises(SourceError, match="more than 10 bytes"):
        plan_install(HOOKED["claude"], data)


def test_a_file_that_changed_after_it_was_shown_is_left(home: Path, data: Path) -> None:
    path = place(home, "claude", "{}")
    plan = plan_install(HOOKED["claude"], data)
    path.write_text('{"a": 1}')
    with pytest.raises(ConflictError, match="has changed meanwhile"):
        carry_out(plan, data)
    assert path.read_text() == '{"a": 1}'


@pytest.mark.parametrize(
    ("word", "variable", "file"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "OPENCODE_CONFIG_DIR", "plugin/turnlog.js"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugin/turnlog.js"),
    ],
)
def test_homes_are_where_the_environment_says(
    word: str, variable: str, file: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "moved"))
    install(word, data)
    assert (tmp_path / "moved" / file).is_file()


def test_the_journal_holds_no_settings_and_is_for_the_user_alone(home: Path, data: Path) -> None:
    place(home, "claude", '{"env": {"TOKEN": "s3cret"}}')
    install("claude", data)
    journal = data / "hooks-installed.json"
    assert "s3cret" not in journal.read_text()
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600


def test_a_journal_that_is_none_is_reported(home: Path, data: Path) -> None:
    data.mkdir()
    (data / "hooks-installed.json").write_text("[]")
    with pytest.raises(SourceError, match=r"hooks-installed\.json"):
        plan_install(HOOKED["claude"], data)


def test_the_plugin_names_the_folder_of_the_store(home: Path, tmp_path: Path) -> None:
    data = tmp_path / 'a "quoted" folder'
    install("opencode", data)
    line = next(line for line in place(home, "opencode").read_text().splitlines() if line.startswith("const FOLDER"))
    assert json.loads(line.partition("=")[2]) == os.fspath(data)
