"""turnlog's server in an agent's settings: a plan of the change that can be shown, and carrying it out.

The server is a member `turnlog` of a JSON object, or a table of a TOML file at its end, by its name or in a list. What
a plan does not name stays byte for byte. A change is made only if the settings then say the same as before but for this
server: otherwise they are refused, with path and line.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from turnlog.agent_settings import changes
from turnlog.agent_settings.changes import (
    Journal,
    JournalEntry,
    Plan,
    SettingsPlan,
    State,
    lines_of,
    naming_file,
    read_settings,
    settings_path,
    text_before,
)
from turnlog.agent_settings.jsonc import Addition, Edit, Object, add_members, apply, cut, line_of, parse, plain
from turnlog.agents.base import Agent, McpSettings
from turnlog.errors import FormatError

SERVER = "turnlog"
"""The server's name in the settings; agents make their names of its tools from it."""


def server_command(store: Path | None = None) -> list[str]:
    """The program that an agent starts, and its arguments; `store` if it is not the user's own."""
    # `-I`: the agent starts it in the folder of a project, whose modules must not be imported.
    command = [sys.executable, "-I", "-m", "turnlog", "mcp"]
    return command if store is None else [*command, "--store", os.fspath(store)]


def plan_install(agent: Agent, command: Sequence[str], folder: Path, project: Path | None = None) -> SettingsPlan:
    """The plan that adds the server to an agent's settings, or renews it.

    Args:
        agent: Whose settings; one that has `mcp`.
        command: `server_command`.
        folder: The folder of the store.
        project: The folder of a project whose settings are meant, instead of the user's.

    Raises SourceError when the settings cannot be read for certain, or name another server `turnlog`.
    """
    settings = _settings_of(agent)
    path = settings_path(settings.home, settings.file, project, settings.project_file)
    before = read_settings(path)
    known = journal_in(folder).get(path)
    form = _FORMS[settings.form](settings)
    with naming_file(path):
        text = text_before(path, before, known, form.without)
        edits, made = form.added(text, _entry(settings, command))
        after = apply(text, edits)
        _check(form, text, after, _entry(settings, command))
    # Removing the server deletes a file that only turnlog has written.
    is_new = before is None or (known is not None and known.is_new)
    entry = JournalEntry.of(after.encode(), edits, made, is_new=is_new)
    return SettingsPlan(path, before, after.encode(), entry, _state(form, before, after))


def plan_remove(agent: Agent, folder: Path, project: Path | None = None) -> SettingsPlan:
    """The plan that removes the server. Raises SourceError when the settings cannot be read for certain."""
    settings = _settings_of(agent)
    path = settings_path(settings.home, settings.file, project, settings.project_file)
    before = read_settings(path)
    known = journal_in(folder).get(path)
    form = _FORMS[settings.form](settings)
    with naming_file(path):
        if before is None or not _is_ours(form.servers(before.decode(errors="replace")).get(SERVER)):
            return SettingsPlan(path, before, before, None, "absent")
        text = text_before(path, before, known, form.without)
        _check(form, before.decode(), text, None)
    is_new = known is not None and known.is_new
    after = None if is_new and text.strip() in ("", "{}") else text.encode()
    return SettingsPlan(path, before, after, None, "installed")


def carry_out(plan: Plan, folder: Path) -> None:
    """Carry out a plan of the store in `folder`. See `turnlog.agent_settings.changes.carry_out`."""
    changes.carry_out(plan, journal_in(folder))


def journal_in(folder: Path) -> Journal:
    """The journal of servers next to the store in `folder`."""
    return Journal(folder / "mcp-installed.json")


def _settings_of(agent: Agent) -> McpSettings:
    if agent.mcp is None:
        raise ValueError(f"turnlog cannot add itself to the settings of {agent.display_name}")
    return agent.mcp


def _entry(settings: McpSettings, command: Sequence[str]) -> dict[str, Any]:
    program, *arguments = command
    if settings.joins_arguments:
        return {**settings.entry, "command": [program, *arguments]}
    return {**settings.entry, "command": program, "args": arguments}


def _is_ours(entry: object) -> bool:
    """Whether a server is turnlog's: its command, or one of the arguments, is turnlog, and one is `mcp`."""
    if not isinstance(entry, dict):
        return False
    fields = cast("dict[str, Any]", entry)
    words: list[Any] = []
    for name in ("command", "args"):
        value = fields.get(name)
        words += cast("list[Any]", value) if isinstance(value, list) else [value]
    texts = [word for word in words if isinstance(word, str)]
    return "mcp" in texts and any(Path(text).stem == SERVER for text in texts)


def _state(form: _JsonSettings | _TomlSettings, before: bytes | None, after: str) -> State:
    if before == after.encode():
        return "installed"
    return "absent" if before is None or SERVER not in form.servers(before.decode(errors="replace")) else "outdated"


def _check(form: _JsonSettings | _TomlSettings, before: str, after: str, entry: Mapping[str, Any] | None) -> None:
    """Refuse an edit after which anything but our server is different."""
    expected = {name: value for name, value in form.servers(before).items() if name != SERVER}
    if entry is not None:
        expected[SERVER] = entry
    if form.servers(after) != expected or form.others(after) != form.others(before):
        raise FormatError(
            f"the server {SERVER!r} cannot be changed here without changing something else: do it by hand"
        )


class _JsonSettings:
    """Settings as JSON with comments."""

    def __init__(self, settings: McpSettings) -> None:
        self._field = settings.servers

    def servers(self, text: str) -> dict[str, Any]:
        node = self._root(text).get(self._field)
        return {} if node is None else plain(self._object(text, node, f"`{self._field}`"))

    def others(self, text: str) -> dict[str, Any]:
        fields: dict[str, Any] = plain(self._root(text))
        return {name: value for name, value in fields.items() if name != self._field}

    def added(self, text: str, entry: Mapping[str, Any]) -> Addition:
        server = {SERVER: entry}
        if not text.strip("\ufeff \t\r\n"):
            whole = json.dumps({self._field: server}, ensure_ascii=False, indent=2) + "\n"
            return Addition([Edit(len(text), "", whole)], [[self._field]])
        root = self._root(text)
        node = root.get(self._field)
        if node is None:
            return Addition(add_members(text, root, {self._field: server}), [[self._field]])
        servers = self._object(text, node, f"`{self._field}`")
        known = servers.get(SERVER)
        if known is not None:
            raise FormatError(f"another server is called {SERVER!r}", line=line_of(text, known.start))
        return Addition(add_members(text, servers, server), [])

    def without(self, text: str, made: Sequence[Sequence[str]] | None) -> str:
        """The text without our server, and without the field if we made it and it is empty then."""
        if not text.strip("\ufeff \t\r\n") or not _is_ours(self.servers(text).get(SERVER)):
            return text
        root = self._root(text)
        # Of a repeated key the last is the one that is read.
        number = max(at for at, member in enumerate(root.members) if member.key == self._field)
        servers = self._object(text, root.members[number].value, self._field)
        if len(servers.members) == 1 and (made is None or [self._field] in made):
            return apply(text, cut(text, root, number))
        index = max(at for at, member in enumerate(servers.members) if member.key == SERVER)
        return apply(text, cut(text, servers, index))

    def _root(self, text: str) -> Object:
        if not text.strip("\ufeff \t\r\n"):
            return Object(0, 0, [])
        return self._object(text, parse(text), "the settings")

    @staticmethod
    def _object(text: str, node: Any, what: str) -> Object:
        if not isinstance(node, Object):
            raise FormatError(f"{what} must be an object", line=line_of(text, node.start))
        return node


class _TomlSettings:
    """Settings as TOML. A table of its own at the end needs no knowledge of how the rest is written."""

    def __init__(self, settings: McpSettings) -> None:
        self._field = settings.servers
        self._table = f"[{self._field}.{SERVER}"
        self._head = f"{self._table}]"

    def servers(self, text: str) -> dict[str, Any]:
        found = self._parsed(text).get(self._field, {})
        if not isinstance(found, dict):
            raise FormatError(f"`{self._field}` must be a table")
        return cast("dict[str, Any]", found)

    def others(self, text: str) -> dict[str, Any]:
        return {name: value for name, value in self._parsed(text).items() if name != self._field}

    def added(self, text: str, entry: Mapping[str, Any]) -> Addition:
        if SERVER in self.servers(text):
            raise FormatError(f"another server is called {SERVER!r}")
        return Addition([*self._cleared(text), Edit(len(text), "", self._written(text, entry))], [])

    def without(self, text: str, made: Sequence[Sequence[str]] | None) -> str:
        """The text without our table and the tables in it."""
        if not _is_ours(self.servers(text).get(SERVER)):
            return text
        kept: list[str] = []
        remarks: list[str] = []
        is_inside = False
        for line in lines_of(text):
            # A line of a multi-line text may look like the head of a table, too: then `_check` refuses the change.
            if line.startswith("["):
                is_inside = line.startswith((f"{self._table}]", f"{self._table}."))
            is_remark = is_inside and not line.partition("#")[0].strip()
            if is_remark:
                remarks.append(line)
                continue
            # Comments that only other tables follow are theirs.
            kept += remarks if not is_inside or line.startswith("[") else []
            remarks.clear()
            if not is_inside:
                kept.append(line)
        return "".join([*kept, *remarks])

    def _cleared(self, text: str) -> list[Edit]:
        """What must go before the table can be added."""
        return []

    def _written(self, text: str, entry: Mapping[str, Any]) -> str:
        # The table ends its lines as the file does.
        newline = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
        lines = [self._head, *(f"{name} = {_toml(value)}" for name, value in entry.items()), ""]
        return gap + newline.join(lines)

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise FormatError(f"no TOML: {error}") from error


class _TomlListSettings(_TomlSettings):
    """Settings as TOML with a list of tables, each with its `name`."""

    def __init__(self, settings: McpSettings) -> None:
        super().__init__(settings)
        self._head = f"[[{self._field}]]"

    def servers(self, text: str) -> dict[str, Any]:
        try:
            tables = msgspec.convert(self._parsed(text).get(self._field, []), list[dict[str, Any]])
        except msgspec.ValidationError as error:
            raise FormatError(f"`{self._field}` must be a list of tables") from error
        servers: dict[str, Any] = {}
        for table in tables:
            name = table.get("name")
            if not isinstance(name, str):
                raise FormatError(f"each table of `{self._field}` must have a name")
            if name in servers:
                raise FormatError(f"two servers are called {name!r}")
            servers[name] = {field: value for field, value in table.items() if field != "name"}
        return servers

    def without(self, text: str, made: Sequence[Sequence[str]] | None) -> str:
        """The text without our table and the tables in it."""
        if not _is_ours(self.servers(text).get(SERVER)):
            return text
        lines = lines_of(text)
        # As above, a line of a multi-line text may look like a head: then `_check` refuses the change.
        heads = [at for at, line in enumerate(lines) if line.startswith(self._head)]
        start = heads[list(self.servers(text)).index(SERVER)]
        inner = (f"[{self._field}.", f"[[{self._field}.")
        later = (at for at in range(start + 1, len(lines)) if lines[at].startswith("["))
        end = next((at for at in later if not lines[at].startswith(inner)), len(lines))
        # Comments before the next table are its own.
        while end > start + 1 and not lines[end - 1].partition("#")[0].strip():
            end -= 1
        return "".join(lines[:start] + lines[end:])

    def _cleared(self, text: str) -> list[Edit]:
        """An empty list, as `vibe mcp remove` (3.0.2) leaves it: a table cannot be added to it."""
        found = re.search(rf"^{self._field}\s*=\s*\[\s*\][ \t]*\r?\n?", text, re.MULTILINE)
        return [] if found is None else [Edit(found.start(), found.group(), "")]

    def _written(self, text: str, entry: Mapping[str, Any]) -> str:
        return super()._written(text, {"name": SERVER, **entry})


def _toml(value: Any) -> str:
    """A text or a list of texts. Their JSON is TOML too, but for the character DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_FORMS: Mapping[str, type[_JsonSettings] | type[_TomlSettings]] = {
    "json": _JsonSettings,
    "toml": _TomlSettings,
    "toml-list": _TomlListSettings,
}
