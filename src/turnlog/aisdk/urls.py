"""Addresses as JavaScript's `URL` writes them: what AI SDK 7 makes of the address of a file.

Follows the WHATWG URL standard for absolute addresses of every scheme; hosts are in `url_hosts`. `^` in a path stays,
as Node 20 has it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from turnlog.aisdk.url_hosts import InvalidHost, opaque_host, percent_encoded, special_host
from turnlog.errors import ConversionError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_TRIMMED = "".join(map(chr, range(0x21)))
_DROPPED = str.maketrans("", "", "\t\n\r")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": None}
"""The special schemes, whose addresses have a host and may be written with backslashes."""

_OPAQUE = re.compile(r"[\x00-\x1f\x7f-\U0010ffff]")
_FRAGMENT = re.compile(r'[\x00-\x20"<>`\x7f-\U0010ffff]')
_QUERY = re.compile(r'[\x00-\x20"#<>\x7f-\U0010ffff]')
_SPECIAL_QUERY = re.compile(r'[\x00-\x20"#\'<>\x7f-\U0010ffff]')
_PATH = re.compile(r'[\x00-\x20"#<>?`{}\x7f-\U0010ffff]')
_USER = re.compile(r'[\x00-\x20"#<>?`{}/:;=@\[\\\]^|\x7f-\U0010ffff]')
"""What is percent-encoded in each place."""

_SLASH = re.compile("/")
_ANY_SLASH = re.compile(r"[/\\]")
_DRIVE = re.compile(r"[A-Za-z][:|]")


class _Place(NamedTuple):
    """What stands before the query."""

    authority: str | None
    """With its slashes; None where there is none."""
    path: str


def normalize_url(url: str) -> str:
    """The absolute URL in its normal form; raise ConversionError for a text that is none."""
    # Half a character is no character to it.
    whole = url.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    found = _SCHEME.fullmatch(whole.strip(_TRIMMED).translate(_DROPPED))
    if found is None:
        raise ConversionError(f"Invalid URL: {url[:200]}")
    scheme, rest = found[1].lower(), found[2]
    rest, hash_sign, fragment = rest.partition("#")
    rest, question_mark, query = rest.partition("?")
    try:
        place = _place(scheme, rest)
    except InvalidHost as error:
        raise ConversionError(f"Invalid URL: {url[:200]}") from error
    asked = question_mark + percent_encoded(query, _SPECIAL_QUERY if scheme in _DEFAULT_PORTS else _QUERY)
    return f"{scheme}:{place.authority or ''}{place.path}{asked}{hash_sign}{percent_encoded(fragment, _FRAGMENT)}"


def _place(scheme: str, rest: str) -> _Place:
    if scheme == "file":
        return _file(rest)
    if scheme in _DEFAULT_PORTS:
        authority, path = _split(rest.lstrip("/\\"), _ANY_SLASH)
        return _Place(f"//{_authority(scheme, authority)}", _path(path, _ANY_SLASH))
    if rest.startswith("//"):
        authority, path = _split(rest[2:], _SLASH)
        return _Place(f"//{_authority(scheme, authority)}", _path(path, _SLASH) if path else "")
    if rest.startswith("/"):
        path = _path(rest, _SLASH)
        # Two slashes would announce a host.
        return _Place(None, f"/.{path}" if path.startswith("//") else path)
    return _Place(None, percent_encoded(rest, _OPAQUE))


def _file(rest: str) -> _Place:
    """A file of this machine or of a host; its path may begin with a drive."""
    if re.match(r"[/\\]{2}", rest) is None:
        return _Place("//", _path(rest if _ANY_SLASH.match(rest) else f"/{rest}", _ANY_SLASH, drives=True))
    host, path = _split(rest[2:], _ANY_SLASH)
    if _DRIVE.fullmatch(host):
        return _Place("//", _path(f"/{host}{path}", _ANY_SLASH, drives=True))
    name = special_host(host) if host else ""
    return _Place(f"//{'' if name == 'localhost' else name}", _path(path, _ANY_SLASH, drives=True))


def _split(rest: str, slash: re.Pattern[str]) -> tuple[str, str]:
    """What stands before the first slash, and the rest."""
    found = slash.search(rest)
    return (rest, "") if found is None else (rest[: found.start()], rest[found.start() :])


def _authority(scheme: str, authority: str) -> str:
    """User, host and port; raise InvalidHost where there is no host and one is needed."""
    credentials, at, place = authority.rpartition("@")
    host, port = _split_port(place)
    is_special = scheme in _DEFAULT_PORTS
    if not host and (is_special or at or port is not None):
        raise InvalidHost("no host")
    name = special_host(host) if is_special else opaque_host(host)
    number = _port(port)
    shown = "" if number is None or number == _DEFAULT_PORTS.get(scheme) else f":{number}"
    return f"{_user(credentials)}{name}{shown}"


def _user(credentials: str) -> str:
    user, _, password = credentials.partition(":")
    if not user and not password:
        return ""
    secret = f":{percent_encoded(password, _USER)}" if password else ""
    return f"{percent_encoded(user, _USER)}{secret}@"


def _split_port(place: str) -> tuple[str, str | None]:
    """Host and port; a colon inside of brackets belongs to the host."""
    inside = False
    for index, char in enumerate(place):
        if char == ":" and not inside:
            return place[:index], place[index + 1 :]
        inside = char == "[" or (inside and char != "]")
    return place, None


def _port(port: str | None) -> int | None:
    if not port:
        return None
    if not port.isascii() or not port.isdecimal() or len(port.lstrip("0")) > 5 or int(port) > 0xFFFF:
        raise InvalidHost("no port")
    return int(port)


def _path(path: str, slash: re.Pattern[str], *, drives: bool = False) -> str:
    """The segments behind the first slash, without those that mean another."""
    kept: list[str] = []
    segments = slash.split(path)[1:] or [""]
    for number, segment in enumerate(segments):
        plain = segment.lower().replace("%2e", ".")
        if plain not in (".", ".."):
            is_drive = drives and not kept and _DRIVE.fullmatch(segment) is not None
            kept.append(f"{segment[0]}:" if is_drive else percent_encoded(segment, _PATH))
            continue
        if plain == ".." and kept and not (drives and len(kept) == 1 and _DRIVE.fullmatch(kept[0])):
            kept.pop()
        if number == len(segments) - 1:
            kept.append("")
    return "/" + "/".join(kept)
