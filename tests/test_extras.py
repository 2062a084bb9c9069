"""What needs an extra that is not installed says which one, as the command that installs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SCRIPT = """
import json, sys
from importlib.abc import MetaPathFinder

MISSING = set(sys.argv[2].split(","))

class Nothing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in MISSING else find_spec(name, package)

from click.testing import CliRunner
from turnlog.cli.main import cli

store = ["--store", sys.argv[1] + "/turnlog.db"]

def command(*words):
    result = CliRunner().invoke(cli, words)
    return result.output if result.exit_code == 1 else f"exit code {result.exit_code}: {result.output}"

def python(code):
    try:
        exec(code)
    except Exception as error:
        return str(error)
    return "no error"

from turnlog.server.sample import LOGS
assert CliRunner().invoke(cli, ["sync", "--root", str(LOGS / "claude-code"), *store]).exit_code == 0
runtime = "from turnlog.chat.runtimes import "
print(json.dumps({
    "mcp": command("mcp", *store),
    "tui": command("tui", *store),
    "parquet": command("export", "--as", "parquet", sys.argv[1] + "/tables", *store),
    "otel": command("otel", "push", "--endpoint", "http://127.0.0.1:9", *store),
    "hub": command("hub", "serve"),
    "postgres": python("from turnlog import open_store; open_store('postgresql://localhost/none')"),
    "langchain": python(runtime + "LangChainRuntime"),
    "openai-agents": python(runtime + "OpenAIAgentsRuntime"),
    "pydantic-ai": python(runtime + "PydanticAIRuntime"),
}))
"""

PACKAGES = (
    *("mcp", "textual", "pyarrow", "opentelemetry", "google", "psycopg", "psycopg_pool", "sqlglot", "authlib"),
    *("prometheus_client", "langchain_core", "agents", "pydantic_ai", "redis"),
)

WITHOUT_A_SENTENCE = {"redis": "whoever uses it passes a client of that package"}


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said where none of the extras is installed."""
    folder = tmp_path_factory.mktemp("extras")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), ",".join(PACKAGES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_extra_has_its_sentence(sentences: dict[str, str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(sentences) | set(WITHOUT_A_SENTENCE) == set(project["optional-dependencies"])
    for extra, sentence in sentences.items():
        assert f"pip install 'turnlog[{extra}]'" in sentence, (extra, sentence)
