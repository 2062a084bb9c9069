"""Where things are: the user's home, the folders of other programs, turnlog's own data.

The only module that reads the environment; everybody else calls it, so that a test or a server sets a variable once
and all of turnlog follows. What an agent's variables and folders are is said by the agent (`Folders`). Paths are
absolute and worked out anew on every call. Nothing is created or opened: a folder named here need not exist.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple


def home() -> Path:
    """The user's home folder."""
    return Path.home()


class Folders(NamedTuple):
    """Where a program keeps its files: the folders that a variable names, else the default ones.

    A default begins with `~` (the user's home), `$XDG_CONFIG_HOME`, `$XDG_DATA_HOME` or `$TURNLOG_DATA_DIR`.
    """

    defaults: tuple[str, ...]
    variable: str | None = None
    """Names the folders instead; unset or blank, the defaults hold."""
    is_list: bool = False
    """The variable names any number of folders, separated by commas."""
    home_variable: str | None = None
    """Names a folder that replaces the user's home in the defaults."""


def folders(rule: Folders) -> tuple[Path, ...]:
    """The folders that a rule names in this environment, each once. There is at least one."""
    named = _folders_named_by(rule.variable, is_list=rule.is_list) if rule.variable is not None else ()
    if named:
        return named
    moved = _folders_named_by(rule.home_variable, is_list=False) if rule.home_variable is not None else ()
    return tuple(_default_folder(default, moved[0] if moved else home()) for default in rule.defaults)


def is_anything_at(rule: Folders) -> bool:
    """Whether one of the folders of a rule may be there: a variable names it, or something is at a default place.

    Every sync asks this for all agents, so it makes no `Path` of each folder. What cannot be looked at may be there.
    """
    named = (rule.variable, rule.home_variable)
    return any(map(is_set, named)) or any(_may_exist(_default_place(default)) for default in rule.defaults)


def is_set(variable: str | None) -> bool:
    """Whether a variable has a value that is not blank."""
    return variable is not None and bool(os.environ.get(variable, "").strip())


def file_named_by(variable: str, folder: Path) -> Path | None:
    """The file that a variable names, absolute or relative to a folder; None where it is unset or blank."""
    named = os.environ.get(variable, "").strip()
    return (folder / Path(named).expanduser()).absolute() if named else None


def data_dir() -> Path:
    """The folder of turnlog's own data: `TURNLOG_DATA_DIR`, else the platform's place for it."""
    named = os.environ.get("TURNLOG_DATA_DIR", "").strip()
    return _absolute(named) if named else _own_folder("data", "$XDG_DATA_HOME/turnlog")


def database_path() -> Path:
    """The store that is used when none is named: `turnlog.db` in `data_dir()`."""
    return data_dir() / "turnlog.db"


def sample_path() -> Path:
    """The store of the bundled sample, in its own folder next to the user's store."""
    return data_dir() / "sample" / "turnlog.db"


def live_export_path(store_path: Path) -> Path:
    """The file next to a store that says how much of it a receiver of OpenTelemetry has got."""
    return store_path.with_name(f"{store_path.stem}.otel.json")


def settings_path() -> Path:
    """The file of the user's settings: `TURNLOG_CONFIG`, else `config.toml` in the platform's place for settings."""
    named = os.environ.get("TURNLOG_CONFIG", "").strip()
    return _absolute(named) if named else _own_folder("config", "$XDG_CONFIG_HOME/turnlog") / "config.toml"


def has_settings() -> bool:
    """Whether there are settings to load: the file exists, or `TURNLOG_CONFIG` says that it does."""
    return bool(os.environ.get("TURNLOG_CONFIG", "").strip()) or settings_path().exists()


def set_variable(name: str, value: str) -> None:
    """Set a variable for programs that are started from now on."""
    os.environ[name] = value


def access_token() -> str | None:
    """The access token of the server that `TURNLOG_TOKEN` holds; None where it is unset or blank."""
    return os.environ.get("TURNLOG_TOKEN", "").strip() or None


def watcher_backend() -> str | None:
    """What `TURNLOG_WATCHER` names as the way to follow files; None where it is unset or blank."""
    return os.environ.get("TURNLOG_WATCHER", "").strip() or None


def without_git_places() -> dict[str, str]:
    """The environment for git in a folder of our choice: a hook's variables would lead it to another repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def find_program(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """The absolute path of an installed program, by the `PATH` of an environment; None if there is none.

    Relative entries of `PATH` (`.`, an empty one) and Windows' current folder are passed over: programs are started in
    the folder of a session or of a clone, and a file of that folder must not take the place of a program.
    """
    import shutil

    if len(Path(name).parts) > 1:
        return shutil.which(name)
    listed = (os.environ if environment is None else environment).get("PATH", os.defpath).split(os.pathsep)
    fixed = [folder for folder in map(Path, listed) if folder.is_absolute()]
    places = (str(folder / f"{name}{suffix}") for folder in fixed for suffix in _suffixes(name))
    return next((place for place in places if shutil.which(place) is not None), None)


def folds_case() -> bool:
    """Whether file names that differ only in case are usually the same file on this platform."""
    return sys.platform in ("darwin", "win32")


def wants_colour() -> bool:
    """Whether colours may be written to a terminal: not with `NO_COLOR` (https://no-color.org), nor to a dumb one."""
    return not os.environ.get("NO_COLOR") and not has_dumb_terminal()


def unknown_zone() -> str | None:
    """The time zone that `TZ` names, if this machine does not know it: the C library then takes UTC without a word."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name or (name.startswith("/") and Path(name).exists()):
        return None
    import re
    from zoneinfo import ZoneInfo

    # `CET-1CEST,M3.5.0,M10.5.0/3` and `<+0330>-3:30` describe a zone instead of naming one.
    if re.match(r"(?:[A-Za-z]{3,}|<[\w+-]{3,}>)[+-]?\d", name):
        return None
    try:
        ZoneInfo(name)
    except Exception:  # Odd names give errors of the system, too.
        return name
    return None


def has_dumb_terminal() -> bool:
    """Whether the terminal only writes line after line, and shows every control sequence as characters."""
    return os.environ.get("TERM") == "dumb"


def _suffixes(program: str) -> Sequence[str]:
    """The endings of files that may be a program of this name."""
    if sys.platform != "win32":
        return ("",)
    known = [each for each in os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(";") if each]
    return ("",) if program.lower().endswith(tuple(known)) else known


def _own_folder(kind: Literal["data", "config"], on_linux: str) -> Path:
    if sys.platform == "linux":
        # As platformdirs has it, whose import takes as long as the rest of a status line.
        return _default_folder(on_linux, home())
    import platformdirs

    find = platformdirs.user_data_path if kind == "data" else platformdirs.user_config_path
    return find("turnlog", appauthor=False)


def _default_place(default: str) -> str:
    """The same place as `_default_folder` says, as a text."""
    base, _, rest = default.partition("/")
    if base == "~":
        # Without a home there is no `Path.home()` either: `folders` raises then, and this finds nothing.
        return os.path.expanduser(default)  # noqa: PTH111  # a path object costs ten times as much
    return os.fspath(_default_folder(base, Path.home()) / rest)


def _may_exist(place: str) -> bool:
    try:
        os.stat(place)  # noqa: PTH116  # a path object costs more than the call
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


_XDG_DEFAULTS = {"$XDG_CONFIG_HOME": ".config", "$XDG_DATA_HOME": ".local/share"}


def _default_folder(default: str, user_home: Path) -> Path:
    base, _, rest = default.partition("/")
    if base == "~":
        return user_home / rest
    if base == "$TURNLOG_DATA_DIR":
        return data_dir() / rest
    # The XDG base directory specification says that a relative path here is to be ignored.
    configured = Path(os.environ.get(base.removeprefix("$"), ""))
    return (configured if configured.is_absolute() else user_home / _XDG_DEFAULTS[base]) / rest


def _folders_named_by(variable: str, *, is_list: bool) -> tuple[Path, ...]:
    value = os.environ.get(variable, "")
    names = (name.strip() for name in (value.split(",") if is_list else [value]))
    found = [_absolute(name) for name in names if name]
    # Written in two ways, a folder would be read twice.
    once: dict[object, Path] = {}
    for each in found:
        once.setdefault(str(each).casefold() if folds_case() else each, each)
    return tuple(once.values())


def _absolute(name: str) -> Path:
    return Path(name).expanduser().absolute()


def variables() -> Mapping[str, str]:
    """All variables of this process, for what must not show the secrets in them."""
    return os.environ
