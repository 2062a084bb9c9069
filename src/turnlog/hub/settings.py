"""How a hub is set up: the fields of its file, each of which an option or a variable may name instead."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from turnlog.errors import SettingsError
from turnlog.hub.callers import Role


class OpenIdSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider of OpenID Connect that people sign in with."""

    issuer: str
    """Address below which `/.well-known/openid-configuration` is."""
    client_id: str
    client_secret: str
    name: str = "OpenID Connect"
    """On the button."""
    joins: Role | None = None
    """What somebody becomes in the first team who signs in and was not invited; None: nothing."""


class ProxySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proxy in front of the hub, which may say who somebody is."""

    peers: list[str] = []
    """Addresses or networks of the proxy. From anywhere else, its headers count for nothing."""
    header: str | None = None
    """The header with the name of whoever is signed in; the proxy must remove a client's own."""
    joins: Role | None = None
    """As for OpenID Connect."""


class HubSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it."""

    database: str | None = None
    """URL of a PostgreSQL; None: one of the hub's own, in `data`."""
    blobs: str | None = None
    """A folder, or `s3://bucket/prefix`; None: a folder in `data`."""
    data: str | None = None
    """The hub's own folder; None: one below that of turnlog."""
    postgres_user: str | None = None
    """The user of the system as whom PostgreSQL runs, which refuses root."""
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8765
    url: str | None = None
    """Where browsers and machines find the hub; None: `http://host:port`."""
    metrics_token: str | None = None
    """With this token, /metrics answers also from other machines."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    requests_per_second: Annotated[float, msgspec.Meta(gt=0)] = 100.0
    """Of one person, machine or address."""
    openid: OpenIdSettings | None = None
    proxy: ProxySettings = ProxySettings()

    def networks(self) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        """The proxy's addresses. Raises SettingsError."""
        try:
            return [ipaddress.ip_network(peer, strict=False) for peer in self.proxy.peers]
        except ValueError as error:
            raise SettingsError(f"proxy.peers: {error}") from error


def load_hub_settings(path: Path | None, **given: object) -> HubSettings:
    """The settings of a file, with those that are given instead; None among them is not given.

    Raises:
        SettingsError: The file cannot be read, is not TOML, or has an unknown or invalid setting.
    """
    values: dict[str, object] = {}
    if path is not None:
        try:
            values = msgspec.toml.decode(path.read_bytes())
        except OSError as error:
            raise SettingsError(f"cannot read the settings {path}: {error.strerror}") from error
        except (msgspec.DecodeError, ValueError) as error:
            raise SettingsError(f"cannot use the settings {path}: {error}") from error
    values |= {name: value for name, value in given.items() if value is not None}
    try:
        settings = msgspec.convert(values, HubSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(f"cannot use the settings{'' if path is None else f' {path}'}: {error}") from error
    settings.networks()
    _check_address(settings.url)
    _check_database(settings.database)
    _check_blobs(settings.blobs)
    return settings


def _check_address(url: str | None) -> None:
    """Raise SettingsError for a `url` from which no link could be made."""
    if url is None:
        return
    if not _is_address(url):
        raise SettingsError(f"url: {url!r} is not an address; one looks like this: https://turnlog.example")


def _check_database(url: str | None) -> None:
    """Raise SettingsError for another kind of database. Its address may hold a password: only the kind is named."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", url or "")
    if found and found[1] not in ("postgresql", "postgres"):
        raise SettingsError(
            f"database: {found[0]} is no PostgreSQL; one looks like this: postgresql://user@host/database"
        )


def _check_blobs(place: str | None) -> None:
    """Raise SettingsError for an address of another kind of store, which is no folder either."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):/", place or "")
    # One letter is a drive of Windows.
    if place is None or found is None or len(found[1]) == 1:
        return
    if not re.match(r"s3://[^/\s]", place):
        raise SettingsError(f"blobs: {place!r} cannot be used; it is a folder, or s3://bucket/prefix")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_reached = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_reached and not parts.query and not parts.fragment and not any(map(str.isspace, url))
