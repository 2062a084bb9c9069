"""The page of the hub's API: which scopes open what is that of the hub, and its example runs as it is printed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import msgspec
import pytest

from support.hubs import Hub, listening
from turnlog.hub import scopes
from turnlog.hub.scopes import NEEDS

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "hub-api.md"

ROWS: Final = {
    scopes.READ: "`read`",
    scopes.PUSH: "`push`",
    scopes.SHARE: "`push` and `read`",
    scopes.ADMIN: "`admin`",
    scopes.TEAM: "`read` or `admin`",
    scopes.KEYS: "`admin`, or a browser",
    scopes.BROWSER: "a browser",
    scopes.KNOWN: "any token, or a browser",
    scopes.ANYBODY: "nothing",
}
"""What an address takes -> how the page says it, in its order."""


def addresses(operations: list[str]) -> str:
    """`GET`, `POST tokens`: the methods of an address together."""
    methods: dict[str, list[str]] = {}
    for operation in operations:
        method, _, path = operation.partition(" ")
        path = re.sub(r"\{(\w+?)(_id)?(:path)?\}", lambda found: "{id}" if found[2] else f"{{{found[1]}}}", path)
        methods.setdefault(re.sub(r"^/(api|hub/v1|hub)/", "", path), []).append(method)
    return ", ".join(
        ", ".join([*(f"`{method}`" for method in found[:-1]), f"`{found[-1]} {path}`"])
        for path, found in methods.items()
    )


def table() -> str:
    """The table, as the page has to have it."""
    lines = ["| it takes | below `/hub/v1` | below `/api` |", "|---|---|---|"]
    for need, words in ROWS.items():
        found = [operation for operation, takes in NEEDS.items() if takes == need and "/hub/pages/" not in operation]
        api = [each for each in found if " /api/" in each and not (need == scopes.READ and each.startswith("GET "))]
        every = "every `GET`; " if need == scopes.READ else ""
        lines.append(
            f"| {words} | {addresses([each for each in found if ' /hub/' in each])} | {every}{addresses(api)} |"
        )
    return "\n".join(line.replace("|  |", "| |") for line in lines)


def test_the_page_says_which_scopes_open_what() -> None:
    assert set(NEEDS.values()) == set(ROWS)
    reading = [need for operation, need in NEEDS.items() if operation.startswith("GET /api/")]
    assert set(reading) == {scopes.READ}
    assert table() in PAGE.read_text(encoding="utf-8"), f"the page needs this table:\n{table()}"


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="the example calls curl and jq")
def test_the_example_of_the_page_runs_as_it_is_printed(new_hub: Hub, tmp_path: Path) -> None:
    (example,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with listening(new_hub) as address:
        code = new_hub.people.teams.invite_first(600)
        script = example.replace("http://127.0.0.1:8765", address).replace("code=…", f"code={code}")
        assert code in script
        assert address in script
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    answers = list(msgspec.json.decode(b"[" + b",".join(ran.stdout.encode().splitlines()) + b"]"))
    assert [each.get("error") for each in answers] == [None] * len(answers), ran.stdout
    team, ben, rules, begun, other, device = answers
    assert (team["name"], team["smallest_group"]) == ("Shop", 3)
    assert (ben["user"]["name"], ben["role"]) == ("Ben", "viewer")
    assert rules["rules"]["retention_days"] == 365
    assert (begun["name"], other["team"]["name"]) == ("Second", "Second")
    assert "user_code" in device
