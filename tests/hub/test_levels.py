"""A rule for a folder holds for it under every name, and where two rules may be meant the lower one holds."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.profiles import examples
from turnlog.hub.machine.levels import LEVELS, Levels, Place, spellings
from turnlog.hub.machine.metrics import HashedNames, is_name
from turnlog.hub.machine.state import HubConnection, MachineState
from turnlog.store.feed.hidden_ids import HiddenIds
from turnlog.store.feed.values import TABLES, FeedBatch, FeedPosition, Row


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Folders, and links to one of them: `client`, `client/sub`, `client-b`, `other`, `link`, `links/deep`."""
    for name in ("client/sub", "client-b", "other", "links"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "client")
    (tmp_path / "links" / "deep").symlink_to("../link/sub")
    return tmp_path


SPELLINGS = [
    *("client", "client/", "client//", "./client", "other/../client", "/client", "/.//client/.", "client/sub"),
    *("link", "link/", "link/sub", "links/deep", "links/../link", "links/deep/..", "client/gone/deep", "link/gone"),
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_session_is_in_the_folder_whatever_it_calls_it(work: Path, spelling: str) -> None:
    levels = Levels("redacted", {str(work / "client"): "none"})
    assert levels.of(f"{work}/{spelling}") == "none"
    assert levels.of(f"/{work}/{spelling}") == "none"
    assert levels.of(None, f"{work}/{spelling}") == "none"
    for other in ("client-b", "other", "client-b/../other", "client/../client-b", ""):
        assert levels.of(f"{work}/{other}") == "redacted"


@pytest.mark.parametrize("rule", ["client", "client/", "link", "link/", "other/../client", "links/../link//."])
def test_a_rule_is_for_the_folder_whatever_it_calls_it(work: Path, rule: str) -> None:
    levels = Levels("full", {f"{work}/{rule}": "metrics"})
    for name in ("client", "link", "client/sub", "links/deep"):
        assert levels.of(str(work / name)) == "metrics"
    assert levels.of(str(work / "client-b")) == "full"


def test_the_home_may_be_written_short(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(work))
    assert Levels("full", {"~/client": "none"}).of(str(work / "link")) == "none"
    assert Levels("full", {str(work / "client"): "none"}).of("~/link/sub") == "none"


def test_a_folder_that_is_gone_is_known_by_its_name(work: Path) -> None:
    levels = Levels("full", {str(work / "gone"): "none", str(work / "link"): "none"})
    assert levels.of(f"{work}/other/../gone//sub") == "none"
    (work / "link").unlink()
    (work / "link").symlink_to(work / "other")
    changed = Levels("full", {str(work / "link"): "none"})
    assert changed.of(str(work / "link" / "sub")) == changed.of(str(work / "other")) == "none"


def test_a_link_into_a_folder_with_another_level_has_the_lower_one(work: Path) -> None:
    rules = {str(work / "link"): "full", str(work / "client"): "none"}
    assert Levels("redacted", rules).of(str(work / "link")) == "none"
    assert Levels("redacted", dict(reversed(rules.items()))).of(str(work / "client")) == "none"


def test_the_nearest_rule_holds_in_both_directions(work: Path) -> None:
    above, below = str(work / "client"), str(work / "client" / "sub")
    assert Levels("redacted", {above: "none", below: "full"}).of(str(work / "links" / "deep")) == "full"
    assert Levels("redacted", {above: "full", below: "none"}).of(str(work / "links" / "deep")) == "none"
    assert Levels("redacted", {"/": "none", above: "full"}).of(str(work / "link")) == "full"
    assert Levels("redacted", {"/": "metrics"}).of(str(work / "link")) == "metrics"


@pytest.mark.parametrize(
    ("rules", "level"),
    [
        ({"wt": "none"}, "none"),
        ({"wt": "full"}, "redacted"),
        ({"repo": "full"}, "full"),
        ({"repo": "none"}, "none"),
        ({"repo": "none", "wt": "full"}, "none"),
        ({"repo": "full", "wt": "metrics"}, "metrics"),
        ({"": "none", "repo": "full"}, "full"),
        ({"": "full", "wt": "none"}, "none"),
    ],
)
def test_a_worktree_has_the_lower_level_of_its_folder_and_its_repository(
    tmp_path: Path, rules: dict[str, str], level: str
) -> None:
    levels = Levels("redacted", {str(tmp_path / path): held for path, held in rules.items()})
    assert levels.of(str(tmp_path / "repo"), str(tmp_path / "wt" / "sub")) == level
    assert levels.lowest([Place(str(tmp_path / "repo"), str(tmp_path / "wt"))]) == level


@pytest.mark.parametrize(
    "rule", ["C:\\Work\\Client", "c:/work/client/", "\\\\?\\C:\\Work\\client", "/mnt/c/Work/client"]
)
@pytest.mark.parametrize(
    "folder",
    [
        "C:\\work\\client",
        "c:/Work/Client",
        "C:\\Work\\x\\..\\client\\sub",
        "/c:/work/client",
        "/c/Work/client",
        "/mnt/c/work/CLIENT",
        "/cygdrive/c/work/client",
        "C:\\work.\\Client. . ",
        "C:\\work \\client...\\sub",
    ],
)
def test_drives_of_windows_have_many_names(rule: str, folder: str) -> None:
    levels = Levels("full", {rule: "none"})
    assert levels.of(folder) == "none"
    assert levels.of("D:\\work\\client") == levels.of("C:\\work\\client-b") == "full"


def _nowhere(path: str) -> bool:
    """Let no path be one of this machine."""
    return False


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_case_and_form_of_letters_do_not_count_where_the_disk_ignores_them(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.paths.sys.platform", platform)
    levels = Levels("full", {"/Users/ana/Caf\u00e9": "none"})
    monkeypatch.setattr("turnlog.hub.machine.levels._is_here", _nowhere)
    assert levels.of("/users/ANA/cafe\u0301/sub") == "none"
    assert levels.of("/users/ANA/cafe") == "full"


@pytest.mark.skipif(sys.platform == "win32" or sys.platform == "darwin", reason="case counts elsewhere")
def test_case_counts_where_the_disk_has_it() -> None:
    assert Levels("full", {"/work/client": "none"}).of("/work/Client") == "full"


@pytest.mark.parametrize(
    "path", ["", "relative", "../x", "a\0b", "/a\0b", "//", "/", "~nobody/x", "\udc80", "x" * 5000]
)
def test_no_path_is_too_odd(path: str) -> None:
    for rule in (path, "/work"):
        levels = Levels("redacted", {rule: "none"} if rule else {})
        assert levels.of(path) in LEVELS
    if path:
        assert Levels("full", {path: "none"}).of(path) == "none"


@settings(max_examples=examples(100))
@example(parts=["a", ".."], rules={"/a": "none"})
@given(
    parts=st.lists(st.sampled_from(["a", "b", "..", ".", "", "link"]), max_size=8),
    rules=st.dictionaries(st.sampled_from(["/a", "/a/b", "/b", "/", "/a/link"]), st.sampled_from(LEVELS), max_size=3),
)
def test_a_detour_never_raises_a_level(parts: list[str], rules: dict[str, str]) -> None:
    path = "/" + "/".join(parts)
    levels = Levels("redacted", rules)
    assert levels.of(path) == levels.of(os.path.normpath(path)) == levels.of(f"{path}/")
    assert spellings(path) == spellings(f"{path}//.")


@pytest.mark.parametrize(
    "name",
    [
        *("claude-opus-4-5-20251101", "gpt-5.5", "anthropic/claude-sonnet-4.5", "us.anthropic.claude-v2:0"),
        *("accounts/fireworks/models/deepseek-v3", "models/gemini-3-pro", "llama3.1:8b-instruct-q4_K_M"),
        *("claude-3-5-sonnet@20240620", "openrouter/meta-llama/llama-4:free", "mcp__github__create_issue", "Bash"),
    ],
)
def test_usual_names_leave_at_metrics(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("/home/dev/models/otter.gguf", "C:/models/otter", "C:\\models\\otter", "~/otter", "./otter", "../otter"),
        *("models/../otter", "otter.gguf", "otter.safetensors", "file:/otter", "file:///otter", "home/dev/otter"),
        *("ollama//home/dev/otter", "lmstudio/Users/ana/otter", "vllm:/srv/otter", "http://10.0.0.5:8000/otter"),
        *("box.internal:8000/otter", "a/b/c/d/otter", "projects/otter/locations/eu/publishers/x/models/y"),
        *("openai//mnt/otter", "tools/run-otter.py", "/usr/local/bin/otter", "otter.gguf:q4", "a word", "tmp/otter"),
    ],
)
def test_a_name_that_is_a_place_is_hashed_at_metrics(name: str) -> None:
    assert not is_name(name)


def test_a_project_is_hashed_with_what_only_its_machine_knows(tmp_path: Path) -> None:
    """Members see the user's id, and can guess paths."""

    def project(secret: str) -> str:
        session = dict.fromkeys(TABLES["sessions"], 0) | {
            "key": 1,
            "agent": "toy",
            "external_id": "s",
            "project_key": 7,
        }
        rows: dict[str, list[Row]] = {"sessions": [tuple(session.values())], "projects": [(7, "/home/ana/otter")]}
        batch = FeedBatch(FeedPosition(), FeedPosition(1), has_more=False, rows=rows)
        hidden = HashedNames.of_machine("1", "u-1", "of u-1", secret)
        assert hidden.session("toy:s") == HiddenIds.of_person("1", "u-1", "of u-1").session("toy:s")
        return hidden.hide(batch, {}).rows["projects"][0][1]

    with MachineState(tmp_path / "turnlog.db") as state:
        known = state.secret()
        state.connect(HubConnection("http://127.0.0.1", "t", "1", "u-1", "m-1"))
        state.disconnect()
        assert state.secret() == known
    with MachineState(tmp_path / "turnlog.db") as state:
        assert state.secret() == known
    with MachineState(tmp_path / "other" / "turnlog.db") as state:
        assert state.secret() != known
        assert (
            len({project(known), project(state.secret()), HiddenIds.of_person("1", "u-1").hash("/home/ana/otter")}) == 3
        )
    assert project(known) == project(known)
