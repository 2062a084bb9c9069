"""What a hub answers and logs names neither the address of its database nor a password."""

from __future__ import annotations

import errno
import json
import logging
from typing import Any

import pytest

from support.cli_runner import call
from support.hubs import Hub, save_session
from turnlog.errors import StoreBusyError, StoreError, StoreFullError, StoreUnreachableError
from turnlog.hub.contexts import CallerStore
from turnlog.hub.observing import JsonLineFormatter
from turnlog.hub.people.secrets import Secrets
from turnlog.store.postgres.connection import WrongRowsError
from turnlog.store.postgres.database import Database

URL = "postgresql://hubber:s3cr%40t-word@db.example:5433/hubbase"
SAYS = f'user=hubber host=db.example port=5433 dbname=hubbase: password "s3cr@t-word" of {URL}'
HIDDEN = ("s3cr", "t-word", "db.example", "hubber", "hubbase")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreError(SAYS), 500),
        (StoreBusyError(SAYS), 503),
        (StoreUnreachableError(SAYS), 503),
        (StoreFullError(SAYS), 507),
        (WrongRowsError(SAYS), 422),
        (OSError(errno.ENOSPC, "No space left on device", f"/data/{SAYS}"), 507),
        (PermissionError(errno.EACCES, "Permission denied", f"/data/{SAYS}"), 500),
    ],
)
def test_an_error_of_the_database_is_answered_without_its_address(
    error: Exception, status: int, new_hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = new_hub.browser("Ana")

    def fail(*_: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr(CallerStore, "sessions", fail)
    answer = ana.get("/api/sessions")
    assert answer.status_code == status
    assert not any(each in answer.text for each in HIDDEN), answer.text
    if isinstance(error, StoreError):
        monkeypatch.setattr(Secrets, "caller", fail)
        answer = ana.get("/hub/v1/me")
        assert answer.status_code == 503
        assert not any(each in answer.text for each in HIDDEN), answer.text


def test_the_log_has_no_address_of_the_database() -> None:
    formatter = JsonLineFormatter()
    formatter.hide(URL)
    for text in (URL, "hidden: s3cr@t-word", "s3cr%40t-word", "user=hubber dbname=hubbase host=db.example port=5433"):
        record = logging.LogRecord("psycopg.pool", logging.WARNING, "", 1, "error: %s", (f"{text} and more",), None)
        said = json.loads(formatter.format(record))["what"]
        assert said.startswith("error: ")
        assert said.endswith(" and more")
        assert not any(each in said for each in ("s3cr", "t-word", "hubbase"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://hubber:s3cr@t-word@127.0.0.1:1/hubbase",
        "postgresql://hubber:s3cr/t-word@127.0.0.1:1/hubbase",
        "postgresql://hubber:s3cr%zzt-word@127.0.0.1:1/hubbase",
        "postgresql://hubber@127.0.0.1:s3cr/hubbase",
        "host=127.0.0.1 password=s3cr t-word",
        "postgresql://hubber:s3crt-word@127.0.0.1:1/hubbase",
        "postgresql://hubber@127.0.0.1:1/hubbase?password=s3crt-word",
        "postgresql://hubber@127.0.0.1:1/hubbase?password=s3crt-word&sslpassword=t-word",
    ],
)
def test_a_start_that_fails_names_no_password(url: str) -> None:
    with pytest.raises(StoreError) as raised:
        Database(url)
    for arguments in (("serve", "--port", "0"), ("sign-in", "Ana", "--url", "https://hub.example")):
        refused = call("hub", *arguments, "--database", url)
        assert refused.exit_code == 1
        for said in (refused.stderr + refused.stdout, str(raised.value)):
            assert not any(each in said for each in ("s3cr", "t-word")), said
        assert "hubbase" not in refused.stderr


def test_figures_end_with_no_number(new_hub: Hub) -> None:
    ana, eve = new_hub.browser("Ana", "owner"), new_hub.browser("Eve")
    assert ana.patch("/hub/v1/team", json={"smallest_group": 1}).status_code == 200
    for number in range(4):
        session = save_session(eve, f"e{number}", "words", cwd="/work/shop")
        message = {
            "id": f"u{number}",
            "role": "assistant",
            "model": "m",
            "created_at": "2026-11-20T10:00:00Z",
            "parts": [{"type": "text", "text": "x"}],
            "usage": {"input": 1, "output": 1},
        }
        assert eve.post(f"/api/sessions/{session}/messages", json={"messages": [message]}).is_success
        assert eve.put(f"/hub/v1/sessions/{session}/sharing", json={"visibility": "team"}).is_success
    # As a machine may say it.
    for table in ("usage", "sessions"):
        new_hub.row(f"UPDATE turnlog.{table} SET input = {1 << 62}, output = {1 << 61}, cost = {1 << 62} RETURNING 1")
    new_hub.row("UPDATE turnlog.messages SET input = %s, cost = %s WHERE input = 1 RETURNING 1", 1 << 62, 1 << 62)
    assert ana.post("/hub/v1/budgets", json={"scope": "team", "limit": 5}).status_code == 200
    assert ana.post("/hub/v1/budgets", json={"scope": "person", "subject": new_hub.ids["Eve"], "limit": 5}).is_success
    assert new_hub.row("SELECT max(tokens) FROM turnlog.usage_days")[0] >= 1 << 62
    for path in (
        *(
            f"/hub/v1/usage?by={by}&since=2020-01-0{at}"
            for at, by in enumerate(("person", "project", "day", "model"), 1)
        ),
        *("/hub/v1/usage?format=csv&since=2020-01-05", "/hub/v1/budgets", "/metrics", "/api/sessions", "/api/status"),
        *("/api/usage?by=day", "/api/usage?by=session", "/api/usage?by=model", "/api/insights", "/api/projects"),
        *("/api/models", "/api/sessions?sort=cost", "/api/usage/comparison?since=2026-11-01&until=2026-11-25"),
    ):
        answer = ana.get(path)
        assert answer.status_code == 200, (path, answer.text)
    budgets = ana.get("/hub/v1/budgets").json()["items"]
    assert {each["state"] for each in budgets} == {"exceeded"}
