"""The user's settings: a TOML file that the user writes and turnlog only reads."""

from __future__ import annotations

import msgspec

from turnlog import paths
from turnlog.errors import TurnlogError


class UserSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of the file, with their defaults."""

    sync_before_reading: bool = True
    """Commands that read the store first sync what is new in the agents' logs."""


def load_settings() -> UserSettings:
    """The settings in `paths.settings_path()`; the defaults if the file does not exist.

    Raises:
        TurnlogError: The file cannot be read, is not TOML, or has an unknown or invalid setting.
    """
    path = paths.settings_path()
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return UserSettings()
    except OSError as error:
        raise TurnlogError(f"cannot read the settings {path}: {error.strerror}") from error
    try:
        return msgspec.toml.decode(text, type=UserSettings)
    except (msgspec.DecodeError, ValueError) as error:
        raise TurnlogError(f"cannot use the settings {path}: {error}") from error
