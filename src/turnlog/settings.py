"""The user's settings: a TOML file that the user writes and turnlog only reads."""

from __future__ import annotations

import msgspec

from turnlog import paths
from turnlog.errors import TurnlogError


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file may hold, and what holds without it."""

    sync_before_reading: bool = True
    """Whether commands that read the store first read what is new in the agents' logs."""


def load_settings() -> Settings:
    """The settings in `paths.settings_path()`; the defaults where there is no such file.

    Raises:
        TurnlogError: The file cannot be read, is no TOML, or holds something that is no setting.
    """
    path = paths.settings_path()
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise TurnlogError(f"cannot read the settings {path}: {error.strerror}") from error
    try:
        return msgspec.toml.decode(text, type=Settings)
    except (msgspec.DecodeError, ValueError) as error:
        raise TurnlogError(f"cannot use the settings {path}: {error}") from error
