"""`/api/sessions/{id}/export`: the documents of `turnlog export` as downloads."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from support.server_history import MAIN
from turnlog.exports import ExportFormat
from turnlog.exports.formats import FORMATS
from turnlog.server.app import create_app

ADDRESS = f"/api/sessions/{MAIN}/export"


def test_the_parameter_names_the_formats_that_there_are(tmp_path: Path) -> None:
    schemas = create_app(tmp_path / "turnlog.db").openapi()["components"]["schemas"]
    assert schemas["ExportFormat"]["enum"] == list(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_a_download(client: TestClient, name: ExportFormat) -> None:
    answer = client.get(ADDRESS, params={"as": name, "model": "m", "redact": True})
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == FORMATS[name].media_type
    assert int(answer.headers["x-turnlog-losses"]) >= 0
    assert answer.content


def test_wrong_questions(client: TestClient) -> None:
    assert client.get(ADDRESS).status_code == 422
    assert client.get(ADDRESS, params={"as": "pdf"}).status_code == 422
    assert client.get("/api/sessions/plain:none/export", params={"as": "json"}).status_code == 404
