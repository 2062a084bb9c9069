"""The places in which a log has a text: inputs, commands, outputs, documents, addresses, pictures."""

from __future__ import annotations

import json
import re
import shlex
import struct
import zlib
from collections.abc import Callable
from urllib.parse import quote

from support.secret_kinds import Secret


def _named(secret: Secret) -> tuple[str, str]:
    name, _, value = secret.text.partition("=")
    return name, value


def _tool_input(secret: Secret) -> str | None:
    if secret.form == "named":
        name, value = _named(secret)
        return json.dumps({"type": "tool_use", "name": "deploy", "input": {"env": {name: value}}})
    command = f"deploy --with {secret.text} prod" if secret.form == "token" else secret.text
    return json.dumps({"type": "tool_use", "name": "Bash", "input": {"command": command}})


def _command(secret: Secret) -> str | None:
    if secret.form == "named":
        name, value = _named(secret)
        return f"cd shop && export {name}={shlex.quote(value)} && make deploy\n"
    return f"./deploy --with {shlex.quote(secret.text)} prod\n" if secret.form == "token" else f"{secret.text}\n"


def _output(secret: Secret) -> str | None:
    if secret.form == "named":
        name, value = _named(secret)
        return f"\x1b[32m✔\x1b[0m loaded\r\n  \x1b[36m{name}\x1b[0m=\x1b[33m{value}\x1b[0m\r\n"
    return f"\x1b[32m✔\x1b[0m done\r\n\x1b[1m{secret.text}\x1b[0m\r\n\x1b[2mnext\x1b[0m"


def _json_twice(secret: Secret) -> str | None:
    inner: dict[str, object] = {"ok": True, "body": secret.text}
    if secret.form == "named":
        name, value = _named(secret)
        inner = {"ok": True, name: value}
    return json.dumps({"result": json.dumps({"content": json.dumps(inner)})})


def _markdown(secret: Secret) -> str | None:
    return f"# Setup\n\nPut this into the settings:\n\n```\n{secret.text}\n```\n\nThen go on.\n"


def _env_file(secret: Secret) -> str | None:
    if secret.form == "snippet" or "\n" in secret.text:
        return None
    name, value = _named(secret) if secret.form == "named" else ("SHOP_VALUE", secret.text)
    return f'LOG_LEVEL=info\n{name}="{value}"\nPORT=8080\n'


def _address(secret: Secret) -> str | None:
    if secret.form == "snippet" or "\n" in secret.text:
        return None
    name, value = _named(secret) if secret.form == "named" else ("value", secret.text)
    return f"GET https://api.internal/v1/start?page=1&{name}={quote(value, safe='')}&next=2 200\n"


def _diff(secret: Secret) -> str | None:
    text = secret.text
    if secret.form == "named":
        name, value = _named(secret)
        text = f'  {name} = "{value}"'
    lines = "\n".join(f"+{line}" for line in text.split("\n"))
    return f"diff --git a/shop b/shop\n@@ -1,2 +1,3 @@\n # shop\n-old\n{lines}\n"


def _picture(secret: Secret) -> bytes:
    return png_with(f"Comment\0{secret.text}".encode("latin-1", "replace"))


def png_with(text: bytes) -> bytes:
    """A picture of one pixel with a text chunk."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"tEXt", text), (b"IDAT", zlib.compress(b"\0\0")), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _can_be_cut(secret: Secret) -> bool:
    return secret.form == "token" and "\n" not in secret.text and len(secret.secret) >= 30


def _wrapped(secret: Secret) -> str | None:
    """As a terminal of few columns wraps it."""
    if not _can_be_cut(secret):
        return None
    at = len(secret.secret) * 3 // 5
    return f"the value is {secret.secret[:at]}\n{secret.secret[at:]} it said\n"


def _coloured(secret: Secret) -> str | None:
    """As a search shows it that colours what it found."""
    if not _can_be_cut(secret):
        return None
    at = len(secret.secret) // 2
    before, found, after = secret.secret[:at], secret.secret[at : at + 4], secret.secret[at + 4 :]
    return f"config.py:3: {before}\x1b[1;31m\x1b[K{found}\x1b[m\x1b[K{after}\n"


PLACES: dict[str, tuple[str, Callable[[Secret], str | bytes | None]]] = {
    "tool input": ("json", _tool_input),
    "command": ("sh", _command),
    "output with colours": ("log", _output),
    "JSON in JSON in JSON": ("json", _json_twice),
    "Markdown": ("md", _markdown),
    "env file": ("env", _env_file),
    "address": ("txt", _address),
    "diff": ("diff", _diff),
    "text in a picture": ("png", _picture),
    "cut by a line's end": ("txt", _wrapped),
    "cut by a colour": ("txt", _coloured),
}
"""Place -> ending of a file of it, and the text; None where a secret of this form cannot be there."""

_WINDOW = 10


def is_left(secret: str, text: str) -> bool:
    """Whether ten characters of the secret in a row are left in the text, or all of a shorter one."""
    shown = re.sub(r"\x1b\[[0-9;]*[mK]|\\+u001b\[[0-9;]*[mK]|(?<=\S)\r?\n(?=\S)", "", text)
    for whole in (text, shown):
        for line in re.split(r"[\n]", secret):
            for form in {line, quote(line, safe=""), json.dumps(line)[1:-1], json.dumps(json.dumps(line)[1:-1])[1:-1]}:
                pieces = [form[at : at + _WINDOW] for at in range(max(1, len(form) - _WINDOW + 1))]
                if form and any(piece in whole for piece in pieces):
                    return True
    return False
