"""Where things are: the user's home, the agents' folders, turnlog's own data.

The only module that reads the environment; everybody else asks here, so that a test or a
server sets a variable once and all of turnlog follows. Answers are absolute paths, read anew
on every call. Nothing is created, and nothing is looked at: a folder named here need not exist.
"""

import os
from pathlib import Path

import platformdirs


def home() -> Path:
    """The user's home folder."""
    return Path.home()


def claude_roots() -> tuple[Path, ...]:
    """The configuration folders of Claude Code, each of which may hold a `projects` folder of logs.

    `CLAUDE_CONFIG_DIR` names them (several are separated by commas) and then stands alone. Without it they
    are `~/.claude` and `claude` in the XDG configuration folder, where Claude Code 1.0.30 and later may write.
    """
    named = _folders_named_by("CLAUDE_CONFIG_DIR")
    return named or (home() / ".claude", _xdg_config_home() / "claude")


def codex_roots() -> tuple[Path, ...]:
    """The homes of Codex: `CODEX_HOME` (several are separated by commas), else `~/.codex`."""
    return _folders_named_by("CODEX_HOME") or (home() / ".codex",)


def gemini_roots() -> tuple[Path, ...]:
    """The `.gemini` folder of Gemini CLI: in `GEMINI_CLI_HOME` where that is set, else in the user's home."""
    named = os.environ.get("GEMINI_CLI_HOME", "").strip()
    return ((_absolute(named) if named else home()) / ".gemini",)


def klaude_roots() -> tuple[Path, ...]:
    """The folder of klaude-code, `~/.klaude`: nothing moves it."""
    return (home() / ".klaude",)


def opencode_roots() -> tuple[Path, ...]:
    """The data folder of OpenCode: `opencode` in the XDG data folder, on every platform.

    `OPENCODE_TEST_HOME` stands for the user's home.
    """
    named = os.environ.get("OPENCODE_TEST_HOME", "").strip()
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    if not data.is_absolute():
        data = (_absolute(named) if named else home()) / ".local" / "share"
    return (data / "opencode",)


def opencode_config_dir() -> Path:
    """The folder of OpenCode's settings: `OPENCODE_CONFIG_DIR`, else `opencode` in the XDG configuration folder."""
    named = os.environ.get("OPENCODE_CONFIG_DIR", "").strip()
    return _absolute(named) if named else _xdg_config_home() / "opencode"


def opencode_databases() -> tuple[Path, ...]:
    """The database that `OPENCODE_DB` names, absolute or relative to OpenCode's data folder; none in memory."""
    named = os.environ.get("OPENCODE_DB", "").strip()
    if not named or named == ":memory:":
        return ()
    return ((opencode_roots()[0] / Path(named).expanduser()).absolute(),)


def data_dir() -> Path:
    """The folder of turnlog's own data: `TURNLOG_DATA_DIR`, else the platform's place for it."""
    named = os.environ.get("TURNLOG_DATA_DIR", "").strip()
    return _absolute(named) if named else platformdirs.user_data_path("turnlog", appauthor=False)


def database_path() -> Path:
    """The store that is used when none is named: `turnlog.db` in `data_dir()`."""
    return data_dir() / "turnlog.db"


def sample_path() -> Path:
    """The store of the bundled sample, in a folder of its own beside the user's store."""
    return data_dir() / "sample" / "turnlog.db"


def wants_colour() -> bool:
    """Whether colours may be written to a terminal: not with `NO_COLOR` (https://no-color.org), nor to a dumb one."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _folders_named_by(variable: str) -> tuple[Path, ...]:
    names = (name.strip() for name in os.environ.get(variable, "").split(","))
    return tuple(dict.fromkeys(_absolute(name) for name in names if name))


def _xdg_config_home() -> Path:
    # The XDG base directory specification says that a relative path here is to be ignored.
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return configured if configured.is_absolute() else home() / ".config"


def _absolute(name: str) -> Path:
    return Path(name).expanduser().absolute()
