"""Addresses as JavaScript's `URL` writes them: what AI SDK 7 makes of the address of a file.

Follows the WHATWG URL standard for http(s); of other schemes only the characters that no URL may hold are changed.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from turnlog.errors import ConversionError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_TRIMMED = "".join(map(chr, range(0x21)))
_DROPPED = str.maketrans("", "", "\t\n\r")
_AUTHORITY = re.compile(r"[/\\]*([^/\\?#]*)(.*)", re.DOTALL)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_KEPT = "!$%&'()*+,-./:;=?@[]_~"
"""Characters besides letters and digits that stand as they are in a path and in a query."""


def normalize_url(url: str) -> str:
    """The absolute URL in its normal form; raise ConversionError for a text that is none."""
    found = _SCHEME.fullmatch(url.strip(_TRIMMED).translate(_DROPPED))
    if found is None:
        raise ConversionError(f"Invalid URL: {url[:200]}")
    scheme, rest = found[1].lower(), found[2]
    if scheme not in _DEFAULT_PORTS:
        return f"{scheme}:{quote(rest, safe=_VISIBLE)}"
    authority, tail = _split_authority(rest)
    user, host = _split_user(authority)
    name, port = _split_port(host)
    if not name:
        raise ConversionError(f"Invalid URL: {url[:200]}")
    place = _host(name, url) + ("" if port in ("", _DEFAULT_PORTS[scheme]) else f":{port}")
    return f"{scheme}://{user}{place}{_normalize_tail(tail)}"


_VISIBLE = "".join(map(chr, range(0x20, 0x7F)))


def _split_authority(rest: str) -> tuple[str, str]:
    found = _AUTHORITY.fullmatch(rest)
    assert found is not None
    return found[1], found[2]


def _split_user(authority: str) -> tuple[str, str]:
    user, at, host = authority.rpartition("@")
    return (f"{user}@" if at else ""), host


def _split_port(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and (port.isdecimal() or not port) else (host, "")


def _host(name: str, url: str) -> str:
    try:
        return name.lower() if name.isascii() else name.encode("idna").decode()
    except UnicodeError as error:
        raise ConversionError(f"Invalid URL: {url[:200]}") from error


def _normalize_tail(tail: str) -> str:
    path, hash_sign, fragment = tail.partition("#")
    path, question_mark, query = path.partition("?")
    made = _remove_dots(quote(path.replace("\\", "/"), safe=_KEPT + "|^"))
    if question_mark:
        made += "?" + quote(query, safe=_KEPT + "\\^`{|}").replace("'", "%27")
    return made + (hash_sign and "#" + quote(fragment, safe=_KEPT + "#\\^{|}"))


def _remove_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:] or [""]
    for number, segment in enumerate(segments):
        plain = segment.lower().replace("%2e", ".")
        if plain not in (".", ".."):
            kept.append(segment)
            continue
        if plain == ".." and kept:
            kept.pop()
        if number == len(segments) - 1:
            kept.append("")
    return "/" + "/".join(kept)
