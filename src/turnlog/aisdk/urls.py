"""URLs as JavaScript's `URL` writes them, which AI SDK 7 applies to the URL of a file.

Follows the WHATWG URL standard for absolute URLs of every scheme. `^` in a path stays, as in Node 20.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from itertools import groupby
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from turnlog.errors import ConversionError


class InvalidHost(ValueError):
    """The host of a URL is invalid."""


def normalize_url(url: str) -> str:
    """The absolute URL in normal form. Raises ConversionError for a text that is not one."""
    # A lone surrogate is not a character to it.
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
    query_text = question_mark + percent_encoded(query, _SPECIAL_QUERY if scheme in _DEFAULT_PORTS else _QUERY)
    return f"{scheme}:{place.authority or ''}{place.path}{query_text}{hash_sign}{percent_encoded(fragment, _FRAGMENT)}"


class _Place(NamedTuple):
    """A URL up to its query."""

    authority: str | None
    """With its slashes; None if there is none."""
    path: str


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)

_TRIMMED = "".join(map(chr, range(0x21)))

_DROPPED = str.maketrans("", "", "\t\n\r")

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "file": None}
"""The special schemes, whose URLs have a host and may be written with backslashes."""

_OPAQUE = re.compile(r"[^ -~]")

_FRAGMENT = re.compile(r"[^!#-;=?-_a-~]")

_QUERY = re.compile(r"[^!$-;=?-~]")

_SPECIAL_QUERY = re.compile(r"[^!$-&(-;=?-~]")

_PATH = re.compile(r"[^!$-;=@-_a-z|~]")

_USER = re.compile(r"[^!$-.0-9A-Z_a-z~]")
"""What is percent-encoded in each place."""

_SLASH = re.compile("/")

_ANY_SLASH = re.compile(r"[/\\]")

_DRIVE = re.compile(r"[A-Za-z][:|]")


def percent_encoded(text: str, unsafe: re.Pattern[str]) -> str:
    """The text with unsafe characters percent-encoded as UTF-8."""
    return unsafe.sub(lambda found: "".join([f"%{byte:02X}" for byte in found[0].encode()]), text)


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
    """A file on this machine or on a host; its path may begin with a drive letter."""
    if re.match(r"[/\\]{2}", rest) is None:
        return _Place("//", _path(rest if _ANY_SLASH.match(rest) else f"/{rest}", _ANY_SLASH, drives=True))
    host, path = _split(rest[2:], _ANY_SLASH)
    if _DRIVE.fullmatch(host):
        return _Place("//", _path(f"/{host}{path}", _ANY_SLASH, drives=True))
    name = special_host(host) if host else ""
    return _Place(f"//{'' if name == 'localhost' else name}", _path(path, _ANY_SLASH, drives=True))


def _split(rest: str, slash: re.Pattern[str]) -> tuple[str, str]:
    """The text before the first slash, and the rest."""
    found = slash.search(rest)
    return (rest, "") if found is None else (rest[: found.start()], rest[found.start() :])


def _authority(scheme: str, authority: str) -> str:
    """User, host and port. Raises InvalidHost if a required host is missing."""
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
    """Host and port; a colon within brackets belongs to the host."""
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
    """The segments after the first slash, with `.` and `..` resolved."""
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


def opaque_host(host: str) -> str:
    """The host of a scheme that is not special; may be empty."""
    if host.startswith("["):
        return _ipv6(host)
    if _FORBIDDEN.search(host):
        raise InvalidHost("a character that no host has")
    return percent_encoded(host, _CONTROLS)


def special_host(host: str) -> str:
    """The host of a special scheme: a name in ASCII or a number."""
    if host.startswith("["):
        return _ipv6(host)
    name = _ascii_name(unquote_to_bytes(host).decode("utf-8", "replace"))
    if not name or _FORBIDDEN_IN_NAME.search(name):
        raise InvalidHost("a character that no name has")
    return _ipv4(name) if _ends_in_number(name) else name


_FORBIDDEN = re.compile(r"[\x00\t\n\r #/:<>?@\[\\\]^|]")

_FORBIDDEN_IN_NAME = re.compile(r"[\x00-\x20#/:<>?@\[\\\]^|%\x7f]")

_CONTROLS = re.compile(r"[^ -~]")

_IGNORED = re.compile("[\u00ad\u034f\u180b-\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]")

_DOTS = re.compile("[\u3002\uff0e\uff61]")

_DIGITS = {10: re.compile("[0-9]+"), 8: re.compile("[0-7]*"), 16: re.compile("[0-9A-Fa-f]*")}


def _ascii_name(name: str) -> str:
    """Unicode's mapping for names (UTS 46, nontransitional), as far as Python's tables contain it."""
    if name.isascii():
        return name.lower()
    folded = "".join([char if char in "ßς\u200c\u200d" else _folded(char) for char in _IGNORED.sub("", name)])
    labels = _DOTS.sub(".", unicodedata.normalize("NFC", folded)).split(".")
    if any(label.startswith("xn--") and not label.isascii() for label in labels):
        raise InvalidHost("an encoded name that holds other characters")
    return ".".join([label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in labels])


def _folded(char: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())


def _ends_in_number(name: str) -> bool:
    parts = name.split(".")
    if not parts[-1]:
        parts.pop()
    last = parts[-1] if parts else ""
    return last.isdecimal() or _number(last) is not None


def _number(text: str) -> int | None:
    """A part of an address: decimal, octal (0…) or hexadecimal (0x…)."""
    base, digits = 10, text
    if text[:2].lower() == "0x":
        base, digits = 16, text[2:]
    elif text.startswith("0") and len(text) > 1:
        base, digits = 8, text[1:]
    if len(digits) > 99 or _DIGITS[base].fullmatch(digits) is None:
        return None
    return int(digits or "0", base)


def _ipv4(name: str) -> str:
    parts = name.removesuffix(".").split(".")
    numbers = [number for part in parts if (number := _number(part)) is not None]
    if len(numbers) != len(parts) or len(parts) > 4 or any(number > 255 for number in numbers[:-1]):
        raise InvalidHost("no IPv4 address")
    if numbers[-1] >= 256 ** (5 - len(numbers)):
        raise InvalidHost("no IPv4 address")
    value = numbers[-1] + sum(number * 256 ** (3 - place) for place, number in enumerate(numbers[:-1]))
    return str(ipaddress.IPv4Address(value))


def _ipv6(host: str) -> str:
    """The address in its shortest form: the first longest run of zeros is left out."""
    if not host.endswith("]") or "%" in host:
        raise InvalidHost("no IPv6 address")
    try:
        value = int(ipaddress.IPv6Address(host[1:-1]))
    except ValueError as error:
        raise InvalidHost("no IPv6 address") from error
    groups = [f"{value >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)]
    runs = [list(run) for is_zero, run in groupby(range(8), lambda place: groups[place] == "0") if is_zero]
    longest = max(runs, key=len, default=list[int]())
    if len(longest) < 2:
        return f"[{':'.join(groups)}]"
    return f"[{':'.join(groups[: longest[0]])}::{':'.join(groups[longest[-1] + 1 :])}]"
