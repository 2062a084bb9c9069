"""Sessions of every agent, as the agents wrote them: the bundled sample, which is shown where there is nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.agent_cases import CASES
from support.browser_server import ask, serving
from support.browser_visit import Visit, settle
from support.profiles import some_of
from turnlog.agents.built_in import BUILT_IN

pytestmark = pytest.mark.browser

SHARES = 8
"""The thorough profile opens a session of every agent, more than fit into the time of one test."""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("empty-home"), tmp_path_factory.mktemp("sample-data")) as found:
        yield found


@pytest.fixture(scope="module")
def one_per_agent(sessions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A session of every agent; which one differs from run to run."""
    shuffled = random.sample(sessions, len(sessions))
    return sorted({session["agent"]: session for session in shuffled}.values(), key=lambda found: found["agent"])


@pytest.fixture(scope="module")
def sessions(sample: str) -> list[dict[str, Any]]:
    return ask(f"{sample}/api/sessions?subagents=true&limit=200")["items"]


@pytest.fixture(scope="module")
def window(browser: Browser, sample: str) -> Iterator[Visit]:
    """A window in which all these tests go from session to session."""
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    visit = Visit(context, sample)
    visit.open("/")
    yield visit
    context.close()


@pytest.fixture
def visit(window: Visit) -> Iterator[Visit]:
    yield window
    # Two tests may choose one session, and what the first has unfolded would still be open for the second.
    window.go_on("/")
    problems, window.problems = window.problems, []
    assert problems == []


def open_session(visit: Visit, session: dict[str, Any]) -> Page:
    return visit.go_on(f"/sessions/{quote(session['id'], safe=':')}")


def call_of(sample: str, agent: str, tool: str, visit: Visit, shown: str = ".tool-row") -> Locator:
    """The first call of this tool by an agent that shows this, where a link to its message has led."""
    for call in ask(f"{sample}/api/tool-calls?agent={agent}&tool={quote(tool)}&limit=200")["items"]:
        visit.go_on("/")  # calls of one session are on one page, where a link to another message would not be followed
        page = visit.go_on(f"/sessions/{quote(call['session_id'], safe=':')}#{quote(call['message_id'], safe='')}")
        row = page.locator(f".tool[data-call={json.dumps(call['tool_call_id'])}]").first
        row.wait_for()
        if row.locator(shown).count():
            return row
    raise AssertionError(f"no session of {agent} calls {tool}")


def test_the_sample_has_sessions_of_every_agent(sessions: list[dict[str, Any]]) -> None:
    assert {session["agent"] for session in sessions} == set(BUILT_IN)


@pytest.mark.parametrize("share", range(SHARES))
def test_a_session_opens_with_all_that_is_in_it(visit: Visit, one_per_agent: list[dict[str, Any]], share: int) -> None:
    for session in some_of(one_per_agent[share::SHARES]):
        page = open_session(visit, session)
        expect(page.locator(".message").first).to_be_visible()
        page.keyboard.press("x")
        settle(page)
        assert page.get_by_text("This could not be shown").count() == 0, session["id"]
        shown = page.locator(".entry > .message").evaluate_all("all => all.map(message => message.dataset.message)")
        assert len(shown) == len(set(shown)), session["id"]
        assert page.locator(".timeline").evaluate("timeline => timeline.scrollWidth <= timeline.clientWidth")


@pytest.mark.parametrize(
    ("agent", "tool"),
    [(case.name, case.edit_tool) for case in CASES.values() if case.edit_tool is not None],
)
def test_an_edit_is_the_patch_that_the_agent_recorded(visit: Visit, sample: str, agent: str, tool: str) -> None:
    edit = call_of(sample, agent, tool, visit, ".diff-added")
    edit.locator(".tool-row").first.click()
    expect(edit.locator(".tool-panel .diff-number").first).to_be_attached()
    expect(edit.locator(".diff-added .diff-number").last).not_to_have_text("")


@pytest.mark.parametrize(
    ("agent", "tool"),
    [(case.name, case.subagent_tool) for case in CASES.values() if case.subagent_tool is not None],
)
def test_a_subagent_of_any_agent_opens_in_place(visit: Visit, sample: str, agent: str, tool: str) -> None:
    call_of(sample, agent, tool, visit).locator(".tool-row").first.click()
    expect(visit.page.get_by_role("region", name="Session of the subagent").locator(".message").first).to_be_visible()
