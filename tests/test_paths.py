from pathlib import Path

import pytest

from turnlog import paths
from turnlog.paths import Folders

RULE = Folders(("~/.claude", "$XDG_CONFIG_HOME/claude"), variable="CLAUDE_CONFIG_DIR", is_list=True)


def test_home_follows_the_environment(home: Path) -> None:
    assert paths.home() == home


def test_claude_writes_below_home_or_in_the_xdg_folder(home: Path) -> None:
    assert paths.folders(RULE) == (home / ".claude", home / ".config/claude")


def test_the_xdg_folder_may_be_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/xdg/me")
    assert paths.folders(RULE) == (home / ".claude", Path("/etc/xdg/me/claude"))


def test_a_relative_xdg_folder_is_ignored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "settings")
    assert paths.folders(RULE) == (home / ".claude", home / ".config/claude")


def test_claude_config_dir_names_several_roots_once_each(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-C2: roots are configurable, several are allowed."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", " /a/claude , ~/work,, /a/claude")
    assert paths.folders(RULE) == (Path("/a/claude"), home / "work")


def test_a_blank_claude_config_dir_counts_as_unset(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", " ")
    assert paths.folders(RULE) == (home / ".claude", home / ".config/claude")


def test_a_relative_root_starts_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "claude")
    assert paths.folders(RULE) == (tmp_path / "claude",)


def test_a_variable_that_names_one_folder_may_hold_a_comma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_DIR", "/a,b")
    assert paths.folders(Folders(("~/.tool",), variable="TOOL_DIR")) == (Path("/a,b"),)


def test_another_folder_may_be_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Folders(("~/.tool", "$XDG_DATA_HOME/tool"), home_variable="TOOL_HOME")
    assert paths.folders(rule) == (home / ".tool", home / ".local/share/tool")
    monkeypatch.setenv("TOOL_HOME", "/srv/dev")
    assert paths.folders(rule) == (Path("/srv/dev/.tool"), Path("/srv/dev/.local/share/tool"))
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert paths.folders(rule) == (Path("/srv/dev/.tool"), Path("/data/tool"))


def test_a_file_may_be_named_below_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.file_named_by("TOOL_DB", tmp_path) is None
    monkeypatch.setenv("TOOL_DB", "dev.db")
    assert paths.file_named_by("TOOL_DB", tmp_path) == tmp_path / "dev.db"
    monkeypatch.setenv("TOOL_DB", "/srv/dev.db")
    assert paths.file_named_by("TOOL_DB", tmp_path) == Path("/srv/dev.db")


def test_data_lies_in_the_home_folder_unless_named(home: Path) -> None:
    assert home in paths.data_dir().parents
    assert paths.data_dir().name == "turnlog"
    assert paths.database_path() == paths.data_dir() / "turnlog.db"
    assert paths.sample_path() == paths.data_dir() / "sample/turnlog.db"


def test_turnlog_data_dir_moves_the_data(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLOG_DATA_DIR", "~/kept here")
    assert paths.data_dir() == home / "kept here"
    assert paths.database_path() == home / "kept here/turnlog.db"


def test_naming_a_folder_creates_nothing(home: Path) -> None:
    paths.folders(RULE)
    paths.database_path()
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("name", ["Europe/Berlin", ":UTC", "UTC", "EST5EDT", "CET-1CEST,M3.5.0", "<+03>-3", ""])
def test_a_time_zone_that_there_is_is_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", name)
    assert paths.unknown_zone() is None


@pytest.mark.parametrize("name", ["Europe/Berln", "nonsense", "/no/such/file", "../etc", "a\n"])
def test_a_time_zone_that_there_is_not_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", name)
    assert paths.unknown_zone() == name
