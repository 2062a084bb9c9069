"""`turnlog.chat` is the one place to import a backend's names from, and importing it imports no framework."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from pydantic_ai import Agent

import turnlog.chat
from agents import Agent as OpenAIAgent
from turnlog.chat import Chat, LangChainRuntime, OpenAIAgentsRuntime, PydanticAIRuntime

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial" / "chat-backend.md"
FRAMEWORKS = ("agents", "fastapi", "langchain_core", "langgraph", "pydantic_ai")


@pytest.mark.parametrize("name", turnlog.chat.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(turnlog.chat, name) is not None
    assert name in dir(turnlog.chat)


def test_what_is_no_name_is_said_so() -> None:
    with pytest.raises(AttributeError, match="no attribute 'chats'"):
        turnlog.chat.chats  # noqa: B018  # reading it is what raises


def test_the_tutorial_imports_from_one_place() -> None:
    assert set(re.findall(r"^from (turnlog\S*) import", TUTORIAL.read_text(), re.MULTILINE)) == {"turnlog.chat"}


def test_importing_it_imports_no_framework() -> None:
    names = "Chat, NativeKeeper, ProviderRuntime, RunRequest, Streams"
    script = f"import sys; from turnlog.chat import {names}; print([n for n in {FRAMEWORKS!r} if n in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_an_unwrapped_agent_is_refused_by_the_name_of_its_runtime() -> None:
    for agent, runtime in (
        (Agent("test"), "PydanticAIRuntime"),
        (OpenAIAgent(name="Clerk"), "OpenAIAgentsRuntime"),
        (FakeListChatModel(responses=["Hello."]), "LangChainRuntime"),
    ):
        with pytest.raises(TypeError, match=f"runtime cannot be {type(agent).__name__}: expected {runtime}"):
            Chat(agent)  # type: ignore[arg-type]  # the wrong type is the test


def test_all_names_can_be_imported_without_a_framework() -> None:
    program = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('agents', 'langchain_core', 'langgraph', 'pydantic_ai', 'redis'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from turnlog.chat import *\n"
        "print(Chat.__name__)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("Chat\n", "")


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("pydantic_ai", "PydanticAIRuntime", "pydantic-ai"),
        ("agents", "OpenAIAgentsRuntime", "openai-agents"),
        ("langchain_core", "LangChainRuntime", "langchain"),
    ],
)
def test_a_runtime_without_its_framework_says_what_to_install(package: str, name: str, extra: str) -> None:
    program = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] == {package!r}:\n"
        f"            raise ModuleNotFoundError('No module named {package}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        f"from turnlog.chat import {name}\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.stderr.endswith(f"ImportError: {name} needs more packages: pip install 'turnlog[{extra}]'\n")


def test_an_agent_of_another_framework_is_refused_where_it_is_given() -> None:
    given: Any = OpenAIAgent(name="Clerk")
    with pytest.raises(TypeError, match="PydanticAIRuntime: agent cannot be Agent: expected an Agent of pydantic_ai"):
        PydanticAIRuntime(given)
    given = Agent("test")
    with pytest.raises(TypeError, match="OpenAIAgentsRuntime: agent cannot be Agent: expected an Agent of the OpenAI"):
        OpenAIAgentsRuntime(given)
    given = 5
    with pytest.raises(TypeError, match=r"LangChainRuntime: agent cannot be 5 \(int\): expected a Runnable of lang"):
        LangChainRuntime(given)
