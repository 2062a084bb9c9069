"""The host of an address as the WHATWG URL standard has it: names, IPv4 in all its spellings, IPv6, opaque ones."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from itertools import groupby
from urllib.parse import unquote_to_bytes

_FORBIDDEN = re.compile(r"[\x00\t\n\r #/:<>?@\[\\\]^|]")
_FORBIDDEN_IN_NAME = re.compile(r"[\x00-\x20#/:<>?@\[\\\]^|%\x7f]")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\U0010ffff]")
_IGNORED = re.compile("[\u00ad\u034f\u180b-\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]")
_DOTS = re.compile("[\u3002\uff0e\uff61]")
_DIGITS = {10: re.compile("[0-9]+"), 8: re.compile("[0-7]*"), 16: re.compile("[0-9A-Fa-f]*")}


class InvalidHost(ValueError):
    """What stands for a host is none."""


def percent_encoded(text: str, unsafe: re.Pattern[str]) -> str:
    """The text with its unsafe characters as the bytes of their UTF-8."""
    return unsafe.sub(lambda found: "".join([f"%{byte:02X}" for byte in found[0].encode()]), text)


def opaque_host(host: str) -> str:
    """The host of a scheme that the standard does not know; may be empty."""
    if host.startswith("["):
        return _ipv6(host)
    if _FORBIDDEN.search(host):
        raise InvalidHost("a character that no host has")
    return percent_encoded(host, _CONTROLS)


def special_host(host: str) -> str:
    """The host of a web address: a name in ASCII or a number."""
    if host.startswith("["):
        return _ipv6(host)
    name = _ascii_name(unquote_to_bytes(host).decode("utf-8", "replace"))
    if not name or _FORBIDDEN_IN_NAME.search(name):
        raise InvalidHost("a character that no name has")
    return _ipv4(name) if _ends_in_number(name) else name


def _ascii_name(name: str) -> str:
    """Unicode's mapping for names (UTS 46, nontransitional), as far as Python's tables have it."""
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
    """The address in its shortest spelling: the first longest run of zeros is left out."""
    if not host.endswith("]") or "%" in host:
        raise InvalidHost("no IPv6 address")
    try:
        value = int(ipaddress.IPv6Address(host[1:-1]))
    except ValueError as error:
        raise InvalidHost("no IPv6 address") from error
    pieces = [f"{value >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)]
    runs = [list(run) for is_zero, run in groupby(range(8), lambda place: pieces[place] == "0") if is_zero]
    longest = max(runs, key=len, default=list[int]())
    if len(longest) < 2:
        return f"[{':'.join(pieces)}]"
    return f"[{':'.join(pieces[: longest[0]])}::{':'.join(pieces[longest[-1] + 1 :])}]"
