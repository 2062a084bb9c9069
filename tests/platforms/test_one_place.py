"""What only some systems have is called in `turnlog.platforms` alone, so that nothing else breaks on the others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from support.other_system import MISSING_MODULES, MISSING_NAMES

SOURCE = Path(turnlog.__file__).parent

NAMES = {**MISSING_NAMES, "os": MISSING_NAMES["os"] | {"kill"}}
"""`os.kill(pid, 0)` only looks on POSIX, and ends the process on Windows."""

MODULES = MISSING_MODULES | {"ctypes", "msvcrt", "winreg", "watchdog"}

KEYWORDS = frozenset(["start_new_session", "preexec_fn", "process_group", "creationflags"])

_SUSPICIOUS = re.compile(
    rf"\b(?:os|signal|socket)\.(?:{'|'.join(sorted(NAMES['os'] | NAMES['signal'] | NAMES['socket']))}|open)\b"
    rf"|\b(?:read|write)_text\(|from (?:os|signal|socket) import|\b(?:{'|'.join(sorted(MODULES | KEYWORDS))})\b|/proc"
)
"""Parsing all modules takes seconds."""

EXCEPTIONS = {
    "hooks/send.py": "agents wait for it, and it is started alone: it imports nothing of turnlog",
}


def calls_of_some_systems(text: str) -> Iterator[str]:
    """What of a module's code only some systems have."""
    if not _SUSPICIOUS.search(text):
        return
    tree = ast.parse(text)
    texts = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if name in NAMES.get(module, ()):
                yield f"{node.lineno}: {module}.{name}"
            case ast.Import(names=names):
                yield from (f"{node.lineno}: import {each.name}" for each in names if each.name in MODULES)
            case ast.ImportFrom(module=str(module)) if module in MODULES:
                yield f"{node.lineno}: from {module}"
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{node.lineno}: {module}.{x.name}" for x in names if x.name in NAMES.get(module, ()))
            case ast.keyword(arg=str(name)) if name in KEYWORDS:
                yield f"{node.value.lineno}: {name}="
            case ast.Constant(value=str(value)) if node not in texts and value.startswith("/proc"):
                yield f"{node.lineno}: {value}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="open")):
                # Without it, Windows writes two bytes for the end of a line.
                if not {"BINARY", "O_BINARY", "devnull", "_ONLY_FILES"} & set(_names(node)):
                    yield f"{node.lineno}: os.open without BINARY"
            case ast.Call(func=ast.Attribute(attr="read_text" | "write_text" as name), keywords=given) if not any(
                each.arg in ("encoding", None) for each in given
            ):
                # Windows takes the code page of the user's language.
                yield f"{node.lineno}: {name} without encoding"
            case _:
                pass


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def test_no_other_module_calls_what_only_some_systems_have() -> None:
    found = {
        name: list(calls_of_some_systems(path.read_text()))
        for path in sorted(SOURCE.rglob("*.py"))
        if not (name := path.relative_to(SOURCE).as_posix()).startswith("platforms/") and name not in EXCEPTIONS
    }
    assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_one(name: str) -> None:
    assert list(calls_of_some_systems((SOURCE / name).read_text()))


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.getuid()",
        "from os import nice",
        "import fcntl",
        "def f():\n    import pwd",
        "import signal\nsignal.SIGHUP",
        "Path('/proc/self')",
        "import socket\nsocket.socket(socket.AF_UNIX)",
        "Popen(x, start_new_session=True)",
        "import os\nos.open(path, os.O_RDWR)",
        "path.write_text(text)",
        "import ctypes",
    ],
)
def test_such_a_call_is_found(code: str) -> None:
    assert list(calls_of_some_systems(code))
