"""The web app: hashed files for ever, the page fresh, deep links, and no way out of the folder."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from turnlog.server import Settings

SCRIPT = "console.log('turnlog');\n" * 100


@pytest.fixture
def app_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>turnlog</title>")
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "assets" / "index-4f2a.js").write_text(SCRIPT)
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def page(library: Path, open_client: Callable[..., TestClient], app_folder: Path) -> TestClient:
    return open_client(library, Settings(static_folder=app_folder))


@pytest.mark.parametrize(
    "path", ["/", "/index.html", "/sessions/plain:main", "/sessions/a%2Fb.js", "/search?q=x", "/usage"]
)
def test_every_page_is_the_app_and_requested_anew(page: TestClient, path: str) -> None:
    response = page.get(path)
    assert response.status_code == 200
    assert "<title>turnlog</title>" in response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert page.get(path, headers={"If-None-Match": response.headers["etag"]}).status_code == 304
    assert page.head(path).status_code == 200


def test_hashed_files_are_kept_for_ever(page: TestClient) -> None:
    response = page.get("/assets/index-4f2a.js", headers={"Accept-Encoding": "identity"})
    assert response.text == SCRIPT
    assert response.headers["content-type"] == "text/javascript; charset=utf-8"
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_files_travel_packed(page: TestClient) -> None:
    with page.stream("GET", "/assets/index-4f2a.js", headers={"Accept-Encoding": "gzip"}) as response:
        assert response.headers["content-encoding"] == "gzip"
        body = b"".join(response.iter_raw())
    assert gzip.decompress(body).decode() == SCRIPT
    assert len(body) < len(SCRIPT) / 10


def test_other_files_are_not_kept(page: TestClient) -> None:
    response = page.get("/favicon.svg")
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/assets/index-0000.js", "/assets/", "/assets"])
def test_a_missing_file_is_404_and_not_the_page(page: TestClient, path: str) -> None:
    response = page.get(path)
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "not_found"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/..\\secret.txt",
        "/secret.txt%00.js",
    ],
)
def test_no_address_leads_out_of_the_folder(page: TestClient, path: str) -> None:
    response = page.get(path)
    assert "secret" not in response.text
    assert "root:" not in response.text


def test_a_link_out_of_the_folder_is_no_file(
    library: Path, open_client: Callable[..., TestClient], app_folder: Path
) -> None:
    (app_folder / "leak.txt").symlink_to(app_folder.parent / "secret.txt")
    (app_folder / "out").symlink_to(app_folder.parent, target_is_directory=True)
    page = open_client(library, Settings(static_folder=app_folder))
    for path in ("/leak.txt", "/out/secret.txt"):
        assert page.get(path).text != "secret"


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/sessions/a/b/c"])
def test_unknown_addresses_of_the_api_are_json(page: TestClient, path: str) -> None:
    response = page.get(path)
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "not_found"


def test_other_methods_are_refused(page: TestClient) -> None:
    for path in ("/", "/api/agents", "/api/status"):
        response = page.post(path)
        assert response.status_code == 405
        assert response.json()["error"]["type"] == "method_not_allowed"
        assert response.json()["error"]["message"].startswith("this address takes GET")


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("messages", "POST"),
        ("tool-calls", "POST"),
        ("ownership", "PUT"),
        ("forget", "POST"),
        ("prompt/answer", "POST"),
    ],
)
def test_an_address_that_only_takes_something_says_so_to_who_asks_for_it(
    page: TestClient, path: str, methods: str
) -> None:
    """It used to be an address that is not there."""
    response = page.get(f"/api/sessions/plain:main/{path}")
    assert (response.status_code, response.headers.get("allow")) == (405, methods)
    assert response.json()["error"]["message"] == f"this address takes {methods}, not GET"


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("projects", "GET, HEAD, PATCH"),
        ("sessions", "GET, HEAD, POST"),
        ("tasks/t1", "DELETE, GET, HEAD, PATCH"),
        ("sessions/plain:main", "DELETE, GET, HEAD, PATCH"),
    ],
)
def test_a_refused_method_is_told_all_methods_of_the_address(page: TestClient, path: str, methods: str) -> None:
    """It used to be told those of one route only."""
    response = page.request("TRACE", f"/api/{path}")
    assert (response.status_code, response.headers.get("allow")) == (405, methods)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/api", "/api/nothing", "/api/sessions/a/b/c", "/api/mcp/"])
def test_an_address_that_is_not_there_takes_no_method(page: TestClient, path: str, method: str) -> None:
    assert page.request(method, path).status_code == 404


def test_without_a_built_app_the_page_says_so(client: TestClient) -> None:
    for path in ("/", "/sessions/plain:main"):
        response = client.get(path)
        assert response.status_code == 503
        assert "has not been built" in response.text
        assert "make web" in response.text
        assert response.headers["content-type"].startswith("text/html")
    assert client.get("/api/status").status_code == 200


def test_files_that_a_newer_version_has_taken_away_are_still_there(page: TestClient, app_folder: Path) -> None:
    """A page of this version may be open, and loads its pieces when they are needed."""
    (app_folder / "assets" / "index-4f2a.js").unlink()
    assert page.get("/assets/index-4f2a.js").text == SCRIPT
