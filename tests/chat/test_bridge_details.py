"""What each framework has of its own: files, proofs of thoughts, tools of the page, contexts, handoffs, interrupts."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypedDict

import pytest
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.usage import Usage
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph  # pyright: ignore[reportMissingTypeStubs]  # it ships none
from langgraph.graph.message import MessagesState  # pyright: ignore[reportMissingTypeStubs]  # it ships none
from langgraph.types import interrupt
from openai.types.responses import ResponseCompletedEvent
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, CallDeferred, RunContext, UsageLimits
from pydantic_ai import messages as pydantic_messages
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from agents import Agent as OpenAIAgent
from agents import RunContextWrapper, function_tool
from support import agents_of_langchain, agents_of_openai, agents_of_pydantic_ai
from support.bridges import UNTRACED
from support.chat_script import drain, post, user
from turnlog.aisdk.codec import to_plain
from turnlog.chat import (
    Chat,
    LangChainRuntime,
    MemoryKeeper,
    OpenAIAgentsRuntime,
    PydanticAIRuntime,
    RunRequest,
    Runtime,
    UIMessage,
)
from turnlog.chat.runtimes.langchain import to_langchain
from turnlog.chat.runtimes.openai_agents import to_input_items
from turnlog.chat.runtimes.pydantic_ai import to_model_messages

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="  # a PNG
PICTURE = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PIXEL}", "filename": "a.png"}
LINKED = {"type": "file", "mediaType": "application/pdf", "url": "https://files.example/a.pdf"}
WITH_FILES = {**user("u", "See this"), "parts": [*user("u", "See this")["parts"], PICTURE, LINKED]}


def talk(runtime: Runtime, *messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """The chat once each message was answered."""

    async def run() -> list[dict[str, Any]]:
        chat = Chat(runtime)
        for message in messages:
            await drain(await chat.post(post(message=message), **more))
        return [to_plain(message) for message in await chat.messages("chat")]

    return asyncio.run(run())


def stored(runtime: Runtime, *messages: dict[str, Any]) -> RunRequest:
    """The request that a next answer would get."""

    async def run() -> tuple[UIMessage, ...]:
        keeper = MemoryKeeper()
        chat = Chat(runtime, keeper)
        for message in messages:
            await drain(await chat.post(post(message=message)))
        return tuple(await keeper.load("chat"))

    return RunRequest(chat_id="chat", messages=asyncio.run(run()))


def texts(message: dict[str, Any]) -> list[str]:
    return [part["text"] for part in message["parts"] if part["type"] == "text"]


# -- Pydantic AI


def test_pydantic_ai_gets_files() -> None:
    seen: agents_of_pydantic_ai.Seen = []
    talk(PydanticAIRuntime(agents_of_pydantic_ai.make_agent(seen)), WITH_FILES)
    prompt = seen[0][0].parts[-1]
    assert isinstance(prompt, pydantic_messages.UserPromptPart)
    said, picture, linked = prompt.content
    assert said == "See this"
    assert isinstance(picture, BinaryContent)
    assert (picture.data, picture.media_type) == (base64.b64decode(PIXEL), "image/png")
    assert isinstance(linked, pydantic_messages.DocumentUrl)
    assert linked.url == LINKED["url"]


def test_pydantic_ai_gets_signed_thoughts_back() -> None:
    request = stored(PydanticAIRuntime(agents_of_pydantic_ai.make_agent([])), user("u", "look around"))
    response = to_model_messages(request.history())[1]
    thought = response.parts[0]
    assert isinstance(thought, pydantic_messages.ThinkingPart)
    assert (thought.content, thought.signature, thought.provider_name) == ("Hm", "signed", "function")


def test_pydantic_ai_leaves_a_deferred_call_to_the_page() -> None:
    seen: list[Any] = []

    async def script(messages: list[Any], info: AgentInfo) -> AsyncGenerator[Any, None]:
        seen.append(messages)
        if len(messages) == 1:
            yield {0: DeltaToolCall(name="locate", json_args="{}", tool_call_id="c1")}
        else:
            yield f"You are in {messages[-1].parts[0].content}."

    agent = Agent(FunctionModel(stream_function=script))

    @agent.tool_plain
    def locate() -> str:
        raise CallDeferred

    async def run() -> list[dict[str, Any]]:
        chat = Chat(PydanticAIRuntime(agent))
        await drain(await chat.post(post()))
        message: dict[str, Any] = to_plain((await chat.messages("chat"))[1])
        [call] = [part for part in message["parts"] if part["type"] == "dynamic-tool"]
        assert call["state"] == "input-available"
        call |= {"state": "output-available", "output": "Berlin"}
        await drain(await chat.post(post(message=message)))
        return [to_plain(each) for each in await chat.messages("chat")]

    [_, answer] = asyncio.run(run())
    assert texts(answer) == ["You are in Berlin."]


def test_pydantic_ai_gets_dependencies_and_options() -> None:
    agent: Agent[Any, str] = Agent(TestModel(custom_output_text="Hello."))

    @agent.instructions
    def greet(context: RunContext[Any]) -> str:
        return f"The user is {context.deps['name']}."

    runtime = PydanticAIRuntime(agent)
    assert texts(talk(runtime, user(), dependencies={"name": "Ann"})[1]) == ["Hello."]
    limited = PydanticAIRuntime(agent, usage_limits=UsageLimits(request_limit=0))
    assert texts(talk(limited, user(), dependencies={"name": "Ann"})[1]) == []


def test_pydantic_ai_shows_a_structured_answer_as_a_call() -> None:
    class Place(BaseModel):
        city: str

    agent = Agent(TestModel(custom_output_args={"city": "Berlin"}), output_type=Place)
    [_, answer] = talk(PydanticAIRuntime(agent), user())
    [call] = [part for part in answer["parts"] if part["type"] == "dynamic-tool"]
    assert (call["state"], call["input"]) == ("output-available", {"city": "Berlin"})


# -- OpenAI Agents SDK


class Whole(Model):
    """A model that does not stream: its answer comes at once, in the last event."""

    def __init__(self) -> None:
        self.inner = ScriptedModel(
            [[function_call("look", {"place": "desk"}, call_id="c1")], [assistant_message("Hi.")]]
        )

    async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
        return await self.inner.get_response(*given, **named)

    async def stream_response(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        async for event in self.inner.stream_response(*given, **named):
            if isinstance(event, ResponseCompletedEvent):
                yield event


@function_tool
def look(place: str) -> dict[str, str]:
    return {"seen": place}


def test_openai_agents_may_have_a_model_that_does_not_stream() -> None:
    agent = OpenAIAgent[Any](name="Clerk", model=Whole(), tools=[look])
    [_, answer] = talk(OpenAIAgentsRuntime(agent, run_config=UNTRACED), user())
    [call] = [part for part in answer["parts"] if part["type"] == "dynamic-tool"]
    assert (call["input"], call["output"]) == ({"place": "desk"}, {"seen": "desk"})
    assert texts(answer) == ["Hi."]


def test_openai_agents_get_files_and_sealed_thoughts_back() -> None:
    runtime = OpenAIAgentsRuntime(agents_of_openai.make_agent([]), run_config=UNTRACED)
    items = to_input_items(stored(runtime, WITH_FILES, user("u2", "look around")).history())
    assert [block["type"] for block in items[0]["content"]] == ["input_text", "input_image", "input_file"]
    [thought] = [item for item in items if item.get("type") == "reasoning"]
    assert thought["encrypted_content"] == "sealed"
    kinds = [item["type"] for item in items]
    assert kinds.index("reasoning") < kinds.index("function_call") < kinds.index("function_call_output")


def test_openai_agents_hand_off_and_get_the_context() -> None:
    @function_tool
    def whoami(context: RunContextWrapper[Any]) -> str:
        return context.context["name"]

    specialist = OpenAIAgent[Any](
        name="Specialist",
        model=ScriptedModel([[function_call("whoami", {}, call_id="c2")], [assistant_message("You are Ann.")]]),
        tools=[whoami],
    )
    first = ScriptedModel([[function_call("transfer_to_specialist", {}, call_id="c1")]])
    agent = OpenAIAgent[Any](name="Clerk", model=first, handoffs=[specialist])
    runtime = OpenAIAgentsRuntime(agent, run_config=UNTRACED)
    [_, answer] = talk(runtime, user(), dependencies={"name": "Ann"})
    calls = [(part["toolName"], part["output"]) for part in answer["parts"] if part["type"] == "dynamic-tool"]
    assert calls == [("transfer_to_specialist", {"assistant": "Specialist"}), ("whoami", "Ann")]
    assert texts(answer) == ["You are Ann."]


def test_a_question_inside_of_an_agent_that_is_a_tool_is_asked_too() -> None:
    @function_tool(needs_approval=True)
    def delete(context: RunContextWrapper[Any], place: str) -> str:
        seen.append(context.context)
        return f"{place} is gone"

    seen: list[Any] = []
    inner_model = ScriptedModel(
        [[function_call("delete", {"place": "desk"}, call_id="inner")], [assistant_message("Deleted.")]]
    )
    inner = OpenAIAgent[Any](name="Cleaner", model=inner_model, tools=[delete])
    usage = Usage(requests=1, input_tokens=1, output_tokens=1, total_tokens=2)
    outer_model = ScriptedModel(
        [
            ModelStep(output=[function_call("clean", {"input": "all"}, call_id="outer")], usage=usage),
            [assistant_message("All clean.")],
        ]
    )
    outer = OpenAIAgent[Any](name="Clerk", model=outer_model, tools=[inner.as_tool("clean", "Clean up.")])

    async def run() -> dict[str, Any]:
        chat = Chat(OpenAIAgentsRuntime(outer, run_config=UNTRACED))
        await drain(await chat.post(post(), dependencies={"password": "hunter2"}))
        # What is kept, and not what a page is given.
        stored = await chat._keeper.load("chat")  # pyright: ignore[reportPrivateUsage]  # looks inside on purpose
        assert "hunter2" not in str(to_plain(stored[1]))
        message: dict[str, Any] = to_plain((await chat.messages("chat"))[1])
        [call] = [part for part in message["parts"] if part.get("state") == "approval-requested"]
        assert (call["toolName"], call["input"]) == ("delete", {"place": "desk"})
        call |= {"state": "approval-responded", "approval": {**call["approval"], "approved": True}}
        await drain(await chat.post(post(message=message), dependencies={"password": "changed"}))
        assert seen == [{"password": "changed"}]
        return to_plain((await chat.messages("chat"))[1])

    answer = asyncio.run(run())
    assert texts(answer) == ["All clean."]
    states = {part["toolName"]: part["state"] for part in answer["parts"] if part["type"] == "dynamic-tool"}
    assert states == {"clean": "output-available", "delete": "output-available"}


# -- LangChain and LangGraph


def test_a_chat_model_a_chain_and_a_function_answer() -> None:
    model = FakeListChatModel(responses=["Hello you"])
    prompt = ChatPromptTemplate.from_messages([("system", "Be brief."), ("human", "{question}")])

    def to_input(messages: list[BaseMessage], request: RunRequest) -> dict[str, str]:
        return {"question": request.prompt}

    def shout(messages: list[BaseMessage]) -> str:
        return str(messages[-1].text).upper()

    runtimes: list[tuple[Runtime, str]] = [
        (LangChainRuntime(model), "Hello you"),
        (LangChainRuntime(prompt | model | StrOutputParser(), to_input=to_input), "Hello you"),
        (LangChainRuntime(RunnableLambda(shout)), "HI"),
    ]
    for runtime, said in runtimes:
        assert texts(talk(runtime, user())[1]) == [said]


def test_langchain_gets_files_and_signed_thoughts_back() -> None:
    runtime = LangChainRuntime(agents_of_langchain.make_agent([]))
    messages = to_langchain(stored(runtime, WITH_FILES, user("u2", "look around")).history())
    asked: list[Any] = list(messages[0].content)
    assert [block["type"] for block in asked] == ["text", "image", "file"]
    assert (asked[1]["base64"], asked[2]["url"]) == (PIXEL, LINKED["url"])
    [answer] = [message for message in messages if isinstance(message, AIMessage) and message.tool_calls]
    blocks: list[Any] = list(answer.content_blocks)
    assert blocks[0] == {"type": "reasoning", "reasoning": "Hm", "extras": {"signature": "signed"}}
    assert [call["name"] for call in answer.tool_calls] == ["look", "break"]


def test_a_graph_whose_state_is_lost_ends_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> str:
        keeper = MemoryKeeper()
        await drain(
            await Chat(LangChainRuntime(agents_of_langchain.make_agent([])), keeper).post(
                post(message=user(text="delete it"))
            )
        )
        restarted = Chat(LangChainRuntime(agents_of_langchain.make_agent([])), keeper)
        message: dict[str, Any] = to_plain((await restarted.messages("chat"))[1])
        call = message["parts"][-1]
        call |= {"state": "approval-responded", "approval": {**call["approval"], "approved": True}}
        return (await drain(await restarted.post(post(message=message)))).decode()

    assert '"type":"error"' in asyncio.run(run())
    assert "checkpointer has no paused thread" in caplog.text


class Seen(TypedDict):
    name: str


def graph_of(node: Any, **options: Any) -> Any:
    builder: Any = StateGraph(MessagesState, **options)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder


def test_another_interrupt_is_data_of_the_page() -> None:
    def ask(state: Any) -> Any:
        return {"messages": [AIMessage(str(interrupt({"how": "many?"})))]}

    [_, answer] = talk(LangChainRuntime(graph_of(ask).compile(checkpointer=InMemorySaver())), user())
    [data] = [part["data"] for part in answer["parts"] if part["type"] == "data-interrupt"]
    assert data["value"] == {"how": "many?"}


def test_a_graph_gets_the_context_and_hides_internal_models() -> None:
    hidden: BaseChatModel = FakeListChatModel(responses=["A title"])

    async def node(state: Any, runtime: Any) -> Any:
        title = await hidden.with_config(tags=["nostream"]).ainvoke(state["messages"])
        said = await FakeListChatModel(responses=[f"Hello {runtime.context['name']}."]).ainvoke([title])
        return {"messages": [said]}

    from langgraph.runtime import Runtime as GraphRuntime

    node.__annotations__ = {"state": MessagesState, "runtime": GraphRuntime[Any]}
    runtime = LangChainRuntime(graph_of(node, context_schema=Seen).compile())
    [_, answer] = talk(runtime, user(), dependencies={"name": "Ann"})
    assert texts(answer) == ["Hello Ann."]
