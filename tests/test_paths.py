from pathlib import Path

import pytest

from turnlog import paths


def test_home_follows_the_environment(home: Path) -> None:
    assert paths.home() == home


def test_claude_writes_below_home_or_in_the_xdg_folder(home: Path) -> None:
    assert paths.claude_roots() == (home / ".claude", home / ".config/claude")


def test_the_xdg_folder_may_be_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/xdg/me")
    assert paths.claude_roots() == (home / ".claude", Path("/etc/xdg/me/claude"))


def test_a_relative_xdg_folder_is_ignored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "settings")
    assert paths.claude_roots() == (home / ".claude", home / ".config/claude")


def test_claude_config_dir_names_several_roots_once_each(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-C2: roots are configurable, several are allowed."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", " /a/claude , ~/work,, /a/claude")
    assert paths.claude_roots() == (Path("/a/claude"), home / "work")


def test_a_blank_claude_config_dir_counts_as_unset(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", " ")
    assert paths.claude_roots() == (home / ".claude", home / ".config/claude")


def test_a_relative_root_starts_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "claude")
    assert paths.claude_roots() == (tmp_path / "claude",)


def test_data_lies_in_the_home_folder_unless_named(home: Path) -> None:
    assert home in paths.data_dir().parents
    assert paths.data_dir().name == "turnlog"
    assert paths.database_path() == paths.data_dir() / "turnlog.db"
    assert paths.sample_path() == paths.data_dir() / "sample/turnlog.db"


def test_turnlog_data_dir_moves_the_data(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLOG_DATA_DIR", "~/kept here")
    assert paths.data_dir() == home / "kept here"
    assert paths.database_path() == home / "kept here/turnlog.db"


def test_asking_for_a_folder_creates_nothing(home: Path) -> None:
    paths.claude_roots()
    paths.database_path()
    assert list(home.iterdir()) == []
