"""Agents of other frameworks behind chats, for tests: the same script in each framework.

The first word of a prompt says what the model does: `look` (thinks, talks, calls one tool that works and one that
does not), `delete` (calls a tool that asks), `fail` (breaks off), anything else (`Hello.`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents import RunConfig
from support import agents_of_langchain, agents_of_openai, agents_of_pydantic_ai
from turnlog.chat import Runtime
from turnlog.chat.runtimes import LangChainRuntime, OpenAIAgentsRuntime, PydanticAIRuntime

Bridge = Callable[[list[Any]], Runtime]
"""Makes a runtime; what its model gets is put into the list, call by call."""

UNTRACED = RunConfig(tracing_disabled=True)

BRIDGES: dict[str, Bridge] = {
    "langchain": lambda seen: LangChainRuntime(agents_of_langchain.make_agent(seen)),
    "openai-agents": lambda seen: OpenAIAgentsRuntime(agents_of_openai.make_agent(seen), run_config=UNTRACED),
    "pydantic-ai": lambda seen: PydanticAIRuntime(agents_of_pydantic_ai.make_agent(seen)),
}

ERRORS_AS_OUTPUT = frozenset({"openai-agents"})
"""What a tool of theirs says of its failure is an output like every other."""
