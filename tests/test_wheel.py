"""The wheel as a user has it: built, installed into an empty environment without node, and opened in a browser."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from turnlog import __version__

ROOT = Path(__file__).parent.parent

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(600)]


def check_call(*command: str | Path) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    check_call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    [wheel] = dist.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`turnlog` in an environment that holds the wheel, what it needs to run, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    check_call(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin/python"
    _link_packages(Path(sysconfig.get_path("purelib", vars={"base": str(folder)})))
    check_call(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"),
        *("--no-deps", "--no-index", wheel),
    )
    check_call(sys.executable, "-m", "pip", "--python", python, "check")
    return folder / "bin/turnlog"


def _link_packages(target: Path) -> None:
    """Put every package that the lock names into another environment, with the bytecode that is there.

    `make setup` has installed just these, by their hashes; to do so again, and to compile them, takes ten seconds.
    """
    for name in locked():
        try:
            files = distribution(name).files or ()
        except PackageNotFoundError:  # for other systems, or older Pythons
            continue
        for file in files:
            if ".." not in file.parts:
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                (target / file).symlink_to(Path(file.locate()))


def locked() -> list[str]:
    """The packages that turnlog needs to run."""
    return re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements/runtime.lock").read_text(), re.MULTILINE)


@pytest.fixture
def environment(command: Path, home: Path) -> dict[str, str]:
    """An empty home, and a path on which there is neither node nor anything else."""
    return {"HOME": str(home), "PATH": str(command.parent), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def address(command: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """Where `turnlog serve` answers, started in a folder that has nothing to do with it."""
    with subprocess.Popen(
        [command, "serve", "--no-browser", "--port", "0"],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix("turnlog is at ").strip()
        finally:
            process.send_signal(signal.SIGTERM)


def fetch(address: str, token: str = "") -> tuple[str, bytes]:
    """Content type and body."""
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["content-type"], answer.read()


def test_sdist_and_wheel_carry_the_built_web_app_and_the_sample(dist: Path, wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        packed = archive.namelist()
    with tarfile.open(dist / f"turnlog-{__version__}.tar.gz") as archive:
        sources = [name.partition("/src/")[2] for name in archive.getnames()]
    files = [path for folder in ("server/static", "sample") for path in (ROOT / "src/turnlog" / folder).rglob("*")]
    expected = {str(path.relative_to(ROOT / "src")) for path in files if path.is_file()}
    assert "turnlog/server/static/index.html" in expected
    assert "turnlog/sample/README.md" in expected
    assert expected - set(packed) == set()
    # Where pip puts what `man` finds.
    assert f"turnlog-{__version__}.data/data/share/man/man1/turnlog.1" in packed
    assert "turnlog/server/static/licenses.md" in packed
    assert expected - set(sources) == set()


def test_the_wheel_carries_all_that_is_no_python_either(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        endings = {Path(name).suffix for name in archive.namelist()}
    assert endings >= {".sql", ".typed", ".json", ".jsonl"}


def test_the_command_works(command: Path, environment: dict[str, str]) -> None:
    def say(*arguments: str) -> str:
        return subprocess.run([command, *arguments], env=environment, capture_output=True, text=True, check=True).stdout

    assert say("--version").split()[-1] == __version__
    assert "Usage: turnlog" in say("--help")
    assert "No logs found" in say("sync")


def test_it_serves_the_page_and_the_sample(address: str) -> None:
    address, _, code = address.partition("#code=")
    body = json.dumps({"code": code}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{address}api/sign-in", body), timeout=30) as answer:
        token = json.load(answer)["key"]
    kind, page = fetch(address)
    assert kind.startswith("text/html")
    assets = re.findall(r"/(assets/[\w-]+-[\w-]{8}\.(?:js|css))", page.decode())
    assert {Path(asset).suffix for asset in assets} == {".js", ".css"}
    for asset in assets:
        kind, body = fetch(address + asset)
        assert body
        assert kind.startswith("text/javascript" if asset.endswith(".js") else "text/css")
    while not (status := json.loads(fetch(f"{address}api/status", token)[1]))["sync"]["passes"]:
        time.sleep(0.1)
    assert status["sample"] is True
    sessions = json.loads(fetch(f"{address}api/sessions?agent=claude-code", token)[1])["items"]
    assert "Give me a tour of the tools, please" in [session["title"] for session in sessions]


def test_the_environment_holds_only_what_the_lock_names(command: Path) -> None:
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "--python", command.parent / "python", "list", "--format=json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    ).stdout
    installed = {re.sub(r"[-_.]+", "-", package["name"]).lower() for package in json.loads(listing)}
    assert installed - set(locked()) == {"turnlog"}


PATHS = ("/api/chat", "/api/model", "/api/careful", "/api/own", "/api/mine")


def test_the_tutorial_runs_as_printed(command: Path, environment: dict[str, str], tmp_path: Path) -> None:
    """Every block, in order, with nothing but what `pip install turnlog` brings."""
    page, run = ROOT / "docs/tutorial/chat-backend.md", ROOT / "tests/support/run_page.py"
    done = subprocess.run(
        [command.parent / "python", run, page, *PATHS],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    answers = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert set(answers) == set(PATHS)
    assert all(answer.startswith("200 ") and answer.endswith("data: [DONE]  ") for answer in answers.values())
    for path, text in {
        "/api/chat": '"delta":"there! "',
        "/api/model": "I am a script.",
        "/api/careful": "approval",
    }.items():
        assert text in answers[path]
