"""`/api/sessions/{id}/ui-messages`: what a page of `useChat` begins with (R-H16)."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from support.server_history import LONG_TEXT, MAIN, PICTURE, sha256
from turnlog.aisdk import validate_ui_messages

ADDRESS = f"/api/sessions/{MAIN}/ui-messages"


def parts(page: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [part for message in page["messages"] for part in message["parts"] if part["type"] == kind]


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_session(client: TestClient, version: int) -> None:
    page = client.get(ADDRESS, params={"version": version}).json()
    assert set(page) == {"messages", "has_more", "next_cursor", "losses"}
    assert [message["role"] for message in page["messages"]][:2] == ["user", "assistant"]
    assert validate_ui_messages(page["messages"], version=version)


def test_pages_by_offset_and_by_cursor(client: TestClient) -> None:
    whole = client.get(ADDRESS).json()["messages"]
    first = client.get(ADDRESS, params={"limit": 1}).json()
    second = client.get(ADDRESS, params={"limit": 1, "offset": 1}).json()
    assert first["has_more"]
    assert first["messages"] + second["messages"] == whole[:2]
    assert client.get(ADDRESS, params={"limit": 1, "cursor": first["next_cursor"]}).json() == second


def test_large_contents_are_previews_unless_requested(client: TestClient) -> None:
    page = client.get(ADDRESS).json()
    (output,) = [part["output"] for part in parts(page, "dynamic-tool") if part["toolCallId"] == "c1"]
    assert len(output) == 8000
    assert "large-text" in {loss["feature"] for loss in page["losses"]}
    (whole,) = [
        part["output"]
        for part in parts(client.get(ADDRESS, params={"whole": True}).json(), "dynamic-tool")
        if part["toolCallId"] == "c1"
    ]
    assert whole == LONG_TEXT


def test_files_have_an_address_here(client: TestClient) -> None:
    urls = {part["url"] for part in parts(client.get(ADDRESS).json(), "file")}
    assert f"http://127.0.0.1:8765/api/blobs/{sha256(PICTURE)}" in urls
    for url in urls:
        assert client.get(url).status_code == 200


def test_options_choose_the_view(client: TestClient) -> None:
    plain = client.get(ADDRESS, params={"include_reasoning": False, "merge_tool_results": False}).json()
    assert parts(plain, "reasoning") == []
    assert {part["state"] for part in parts(plain, "dynamic-tool")} == {"input-available"}
    apart = client.get(ADDRESS, params={"step_starts": False}).json()
    assert parts(apart, "step-start") == []
    assert len(apart["messages"]) == len(client.get(ADDRESS, params={"merge_steps": False}).json()["messages"])


@pytest.mark.parametrize(
    "parameters",
    [{"cursor": "x"}, {"cursor": "0.0.m1", "offset": 1}, {"version": 4}, {"offset": -1}, {"colour": "red"}],
)
def test_parameters_that_make_no_sense(client: TestClient, parameters: dict[str, Any]) -> None:
    response = client.get(ADDRESS, params=parameters)
    assert (response.status_code, response.json()["error"]["type"]) == (422, "invalid_parameter")


def test_a_session_that_is_not_there(client: TestClient) -> None:
    assert client.get("/api/sessions/plain:nothing/ui-messages").status_code == 404


def test_nothing_new_is_sent_twice(client: TestClient) -> None:
    etag = client.get(ADDRESS).headers["etag"]
    assert client.get(ADDRESS, headers={"If-None-Match": etag}).status_code == 304
