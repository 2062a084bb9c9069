"""Where Gemini CLI's files lie, and which project they belong to."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from support.gemini_files import AGENT, SESSION, SESSION_ID, header, lines, user
from turnlog.agents import fold_bytes
from turnlog.agents.base import HOOKED_FROM, Source, SourceKind
from turnlog.agents.gemini_cli.sources import base_position

CHILD = "22222222-2222-4222-8222-222222222222"
LOG = "session-2026-11-21T10-00-11111111"
HASH = sha256(b"/home/dev/shop").hexdigest()


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines(header(), user("u", "hi")))


def test_every_generation_is_found_and_nothing_else(tmp_path: Path) -> None:
    """R-C2"""
    wanted = {
        f"tmp/{HASH}/chats/{LOG}.json": SourceKind.SESSION,
        f"tmp/shop/chats/{LOG}.json": SourceKind.SESSION,
        f"tmp/shop/chats/{LOG}.jsonl": SourceKind.SESSION,
        f"tmp/shop/chats/{LOG}.jsonl.unreadable-1795227229403": SourceKind.SESSION,
        f"tmp/shop/chats/{SESSION}/{CHILD}.jsonl": SourceKind.SUBAGENT,
        f"tmp/shop/tool-outputs/session-{SESSION}/glob_c1.txt": SourceKind.SPILL,
        "tmp/shop/logs.json": SourceKind.SIDECAR,
    }
    make(tmp_path, *wanted)
    make(tmp_path, "oauth_creds.json", "settings.json", "google_accounts.json", "tmp/shop/.project_root")
    make(tmp_path, f"tmp/shop/chats/{LOG}.jsonl.tmp-77", "history/shop/x.jsonl", "tmp/bin/rg")
    found = {str(Path(source.path).relative_to(tmp_path)): source.kind for source in AGENT.discover([tmp_path])}
    assert found == wanted
    appendable = [source.appendable for source in AGENT.discover([tmp_path]) if source.path.endswith(".json")]
    assert not any(appendable)


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    make(tmp_path / "other", f"chats/{LOG}.jsonl")
    make(tmp_path / "root", "tmp/shop/chats/x.txt")
    (tmp_path / "root/tmp/away").symlink_to(tmp_path / "other")
    (tmp_path / f"root/tmp/shop/chats/{LOG}.jsonl").symlink_to(tmp_path / f"other/chats/{LOG}.jsonl")
    assert list(AGENT.discover([tmp_path / "root"])) == []


def test_home_may_be_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-C2"""
    assert AGENT.home_folders() == (home / ".gemini",)
    monkeypatch.setenv("GEMINI_CLI_HOME", "/srv/dev")
    assert AGENT.home_folders() == (Path("/srv/dev/.gemini"),)


def project(root: Path, folder: str) -> str | None:
    path = f"tmp/{folder}/chats/{LOG}.jsonl"
    make(root, path)
    (source,) = [source for source in AGENT.discover([root]) if source.path.endswith(path)]
    return fold_bytes(AGENT, source, Path(source.path).read_bytes()).sessions[SESSION_ID].project_path


def test_a_folder_names_its_project_by_name_or_hash(tmp_path: Path) -> None:
    """R-C6"""
    (tmp_path / "projects.json").write_text(json.dumps({"projects": {"/home/dev/shop": "shop", "/srv": "srv"}}))
    assert project(tmp_path, "shop") == "/home/dev/shop"
    assert project(tmp_path, HASH) == "/home/dev/shop"
    assert project(tmp_path, "unheard-of") is None


def test_the_folder_itself_knows_best(tmp_path: Path) -> None:
    make(tmp_path, "tmp/shop/.project_root")
    (tmp_path / "tmp/shop/.project_root").write_text("/home/dev/moved\n")
    assert project(tmp_path, "shop") == "/home/dev/moved"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"projects": 7}'])
def test_a_broken_list_of_projects_names_no_folder(tmp_path: Path, content: str) -> None:
    (tmp_path / "projects.json").write_text(content)
    assert project(tmp_path, "shop") is None


def test_credentials_are_never_opened(tmp_path: Path) -> None:
    """Also where a project's file is a link to them."""
    (tmp_path / "oauth_creds.json").write_text("secret")
    make(tmp_path, f"tmp/shop/chats/{LOG}.jsonl")
    (tmp_path / "tmp/shop/.project_root").symlink_to(tmp_path / "oauth_creds.json")
    assert project(tmp_path, "shop") is None


def test_a_spilled_output_belongs_to_its_session(tmp_path: Path) -> None:
    make(tmp_path, f"tmp/shop/tool-outputs/session-{SESSION}/glob_c1.txt")
    (source,) = AGENT.discover([tmp_path])
    (spill,) = fold_bytes(AGENT, source, b"all of it").spills
    assert (spill.session_id, spill.name, spill.size) == (SESSION_ID, "glob_c1.txt", 9)


def test_places_begin_with_the_named_minute_and_end_before_hooks() -> None:
    """R-C13: files of one session stand in the order in which they were begun, whatever a name says."""

    def first(name: str) -> int:
        return base_position(Source(agent="gemini-cli", path=f"/home/dev/chats/{name}", root="/home/dev"))

    minutes = ["2025-01-01T00-01", "2026-11-21T10-00", "2026-11-21T10-01", "2026-12-01T00-00", "9999-12-31T23-59"]
    places = [first(f"session-{minute}-11111111.jsonl") for minute in minutes]
    assert places == sorted(set(places))
    assert places[0] == 1 << 28
    assert places[-1] + (1 << 30) < HOOKED_FROM
    assert first("session-2026-13-41T10-00-11111111.json") == first("session-1795227338901-8ac3651c.jsonl") == 0
