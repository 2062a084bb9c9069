"""The overview of log formats names every agent, and says of each what the code knows."""

import re
from pathlib import Path

import pytest

from turnlog.agents import agent_names, agents
from turnlog.agents.base import Agent

FOLDER = Path(__file__).parent.parent / "docs" / "formats"
ROWS = {
    cells[1].strip("`"): cells
    for line in (FOLDER / "index.md").read_text().splitlines()
    if line.startswith("| [")
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}
LINUX = {"$XDG_DATA_HOME": "~/.local/share", "$XDG_CONFIG_HOME": "~/.config"}
AGENTS = sorted(agents(), key=lambda agent: agent.name)


def test_every_agent_has_a_row_in_the_order_of_names() -> None:
    assert sorted(ROWS) == sorted(agent_names())
    names = [cells[0].lower() for cells in ROWS.values()]
    assert names == sorted(names)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_row_says_what_the_agent_says(agent: Agent) -> None:
    shown, _, logs, checked, _, resume = ROWS[agent.name]
    page = re.fullmatch(r"\[(.+)\]\((.+)\)", shown)
    assert page is not None
    assert page[1] == agent.display_name
    if agent.homes is not None and "import" not in logs and not logs.startswith("folders that"):
        home = agent.homes.defaults[0]
        for variable, place in LINUX.items():
            home = home.replace(variable, place)
        assert f"`{home}`" in logs
    if agent.homes is not None and agent.homes.variable is not None:
        assert f"`{agent.homes.variable}`" in logs
    command = agent.command
    words = [] if command is None or not command.resume else [command.program, *command.resume, "ID"]
    assert resume.partition(",")[0] == (f"`{' '.join(words)}`" if words else "\N{EN DASH}")
    evidence = (FOLDER / page[2]).read_text().partition("**Evidence.**")[2].partition("\n## ")[0]
    if evidence and agent.name not in ("atif", "cline-extension"):
        unproven = re.search(r"\bNo (run|real)\b|did not run|no run is possible", evidence) is not None
        assert (checked == "runs") == (" ran " in evidence or "by running" in evidence), evidence
        assert checked == "runs" or unproven
