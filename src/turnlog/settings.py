"""The user's settings: a TOML file that the user writes and turnlog only reads."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from turnlog import paths
from turnlog.errors import SettingsError

_Period: TypeAlias = Literal["day", "week", "month"]

_Dollars: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e9)]


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars that the user means to spend at most; None for no budget."""

    day: _Dollars | None = None
    week: _Dollars | None = None
    """From Monday."""
    month: _Dollars | None = None

    def limits(self) -> dict[_Period, float]:
        """The budgets that there are."""
        every: dict[_Period, float | None] = {"day": self.day, "week": self.week, "month": self.month}
        return {period: limit for period, limit in every.items() if limit is not None}


_Level: TypeAlias = Literal["none", "metrics", "redacted", "full"]


class HubLevels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much leaves this machine for its hub. `turnlog hub level` goes before what is said here."""

    level: _Level = "redacted"
    """Of projects for which nothing else is said."""
    projects: dict[str, _Level] = {}
    """Folder -> the level of projects there and below."""


class OtelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A receiver of OpenTelemetry. Where none is named, nothing is sent to any."""

    endpoint: str | None = None
    headers: dict[str, str] = {}
    """Of every request to `endpoint`."""
    content: bool = False
    """Whether `turnlog serve` sends prompts, answers, inputs and outputs too."""


class UserSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of the file, with their defaults."""

    sync_before_reading: bool = True
    """Commands that read the store first sync what is new in the agents' logs."""
    budgets: BudgetSettings = BudgetSettings()
    hub: HubLevels = HubLevels()
    otel: OtelSettings = OtelSettings()


def load_settings() -> UserSettings:
    """The settings in `paths.settings_path()`; the defaults if there is no such file and `TURNLOG_CONFIG` names none.

    Raises:
        SettingsError: The file cannot be read, is not TOML, or has an unknown or invalid setting.
    """
    path = paths.settings_path()
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if paths.has_settings():
            raise SettingsError(f"there are no settings at {path}, which TURNLOG_CONFIG names") from None
        return UserSettings()
    except OSError as error:
        raise SettingsError(f"cannot read the settings {path}: {error.strerror}") from error
    try:
        return msgspec.toml.decode(text, type=UserSettings)
    except (msgspec.DecodeError, ValueError) as error:
        raise SettingsError(f"cannot use the settings {path}: {error}") from error
