"""Extensions of the Cline family, for the tests that every agent shares."""

from __future__ import annotations

from support.agent_cases import AgentCase, Answer, Lack

_ALL: frozenset[Lack] = frozenset(
    {"stop reasons", "project in the path", "one message per record", "times as text", "run events"}
)
_ALSO_CLINE = _ALL | frozenset[Lack]({"subagents"})
_STORAGE = ".cursor-server/data/User/globalStorage"


def _case(name: str, home: str, *, is_cline: bool = False) -> AgentCase:
    recorded = "cline" if is_cline else "roo"
    return AgentCase(
        name=name,
        home=home,
        recorded=(f"cline_tasks/handwritten/{recorded}",),
        answer=Answer("It stays", 1800, 1700, 20, 0)
        if is_cline
        else Answer("The notes hold alpha and gamma", 100, 2000, 20, 0),
        lacks=_ALSO_CLINE if is_cline else _ALL,
        sample_cwd="/home/dev/work",
        sample_logs="tasks",
        subagent_tool=None if is_cline else "new_task",
    )


CASES = (
    _case("cline-extension", f"{_STORAGE}/saoudrizwan.claude-dev", is_cline=True),
    _case("roo-code", f"{_STORAGE}/rooveterinaryinc.roo-cline"),
    _case("zoo-code", f"{_STORAGE}/zoocodeorganization.zoo-code"),
    _case("kilo-extension", f"{_STORAGE}/kilocode.kilo-code"),
    _case("ibm-bob", f"{_STORAGE}/ibm.bob-code"),
)
