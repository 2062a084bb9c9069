"""The agents of this package: where the class of each is, and where its homes are looked for.

This is all that a sync must know of an agent of which nothing is on this machine. Its package, which describes it and
reads its logs, is imported when something may be there, or when somebody asks for the agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from turnlog.agents.editors import DESCENDANTS, PORTABLE, VSCODE, editor_homes
from turnlog.paths import Folders, is_anything_at, is_set


class BuiltIn(NamedTuple):
    """An agent of this package."""

    place: str
    """`package:class`, below `turnlog.agents`."""
    homes: Folders
    others: tuple[Folders, ...] = ()
    """Further places of homes."""
    variables: tuple[str, ...] = ()
    """Further variables that name one; only the agent's class knows how."""

    @property
    def target(self) -> str:
        """`module:class`."""
        return f"turnlog.agents.{self.place}"


_EXTENSIONS: Final = editor_homes(*VSCODE, *DESCENDANTS)

BUILT_IN: Final = {
    "aider": BuiltIn("aider:Aider", Folders(("~/.aider",), variable="TURNLOG_AIDER_DIR", is_list=True)),
    "amp": BuiltIn("amp:Amp", Folders(("$XDG_DATA_HOME/amp",))),
    "atif": BuiltIn("trajectory_files:Atif", Folders(("$TURNLOG_DATA_DIR/exports/atif",))),
    "chatgpt": BuiltIn("chat_exports:ChatGpt", Folders(("$TURNLOG_DATA_DIR/exports/chatgpt",))),
    "claude-ai": BuiltIn("chat_exports:ClaudeAi", Folders(("$TURNLOG_DATA_DIR/exports/claude-ai",))),
    "claude-code": BuiltIn(
        "claude_code:ClaudeCode",
        Folders(("~/.claude", "$XDG_CONFIG_HOME/claude"), variable="CLAUDE_CONFIG_DIR", is_list=True),
    ),
    "cline": BuiltIn("cline:Cline", Folders(("~/.cline/data",), variable="CLINE_DATA_DIR"), variables=("CLINE_DIR",)),
    "cline-extension": BuiltIn(
        "cline_tasks:ClineExtension", _EXTENSIONS, others=(Folders(("~/.cline/data",)),), variables=(PORTABLE,)
    ),
    "codex": BuiltIn("codex:Codex", Folders(("~/.codex",), variable="CODEX_HOME", is_list=True)),
    "continue": BuiltIn("continue_cli:Continue", Folders(("~/.continue",), variable="CONTINUE_GLOBAL_DIR")),
    "copilot-cli": BuiltIn("copilot_cli:CopilotCli", Folders(("~/.copilot",), variable="COPILOT_HOME")),
    "crush": BuiltIn(
        "crush:Crush", Folders(("$XDG_DATA_HOME/crush", "~/AppData/Local/crush"), variable="CRUSH_GLOBAL_DATA")
    ),
    "cursor": BuiltIn(
        "cursor:Cursor",
        Folders(("~/.cursor",), variable="CURSOR_DATA_DIR"),
        others=(
            Folders(("$XDG_CONFIG_HOME/cursor",), variable="CURSOR_CONFIG_DIR"),
            # The editor's, on Linux, macOS and Windows.
            Folders(
                (
                    "$XDG_CONFIG_HOME/Cursor/User",
                    "~/Library/Application Support/Cursor/User",
                    "~/AppData/Roaming/Cursor/User",
                )
            ),
        ),
    ),
    "droid": BuiltIn("droid:Droid", Folders(("~/.factory",), home_variable="FACTORY_HOME_OVERRIDE")),
    "gemini-cli": BuiltIn("gemini_cli:GeminiCli", Folders(("~/.gemini",), home_variable="GEMINI_CLI_HOME")),
    "goose": BuiltIn(
        "goose:Goose",
        Folders(("$XDG_DATA_HOME/goose", "~/AppData/Roaming/Block/goose/data"), variable="GOOSE_PATH_ROOT"),
    ),
    "gptme": BuiltIn(
        "gptme:Gptme",
        Folders(("$XDG_DATA_HOME/gptme", "~/Library/Application Support/gptme")),
        variables=("GPTME_LOGS_HOME",),
    ),
    "grok-build": BuiltIn("grok_build:GrokBuild", Folders(("~/.grok",), variable="GROK_HOME")),
    "hermes": BuiltIn("hermes:Hermes", Folders(("~/.hermes",), variable="HERMES_HOME")),
    "ibm-bob": BuiltIn("cline_tasks:IbmBob", editor_homes("IBM Bob", "Bob-IDE"), variables=(PORTABLE,)),
    "icodemate": BuiltIn("opencode:ICodeMate", Folders(("$XDG_DATA_HOME/icodemate",))),
    "inspect-ai": BuiltIn("inspect_logs:InspectAi", Folders(("$TURNLOG_DATA_DIR/exports/inspect-ai",))),
    "kilo": BuiltIn(
        "opencode:Kilo", Folders(("$XDG_DATA_HOME/kilo",), home_variable="KILO_TEST_HOME"), variables=("KILO_DB",)
    ),
    "kilo-extension": BuiltIn("cline_tasks:KiloExtension", _EXTENSIONS, variables=(PORTABLE,)),
    "kimi-cli": BuiltIn("kimi:KimiCli", Folders(("~/.kimi",), variable="KIMI_SHARE_DIR")),
    "kimi-code": BuiltIn("kimi:KimiCode", Folders(("~/.kimi-code",), variable="KIMI_CODE_HOME")),
    "klaude": BuiltIn("klaude:Klaude", Folders(("~/.klaude",))),
    "llm": BuiltIn(
        "llm:Llm",
        Folders(
            ("$XDG_CONFIG_HOME/io.datasette.llm", "~/Library/Application Support/io.datasette.llm"),
            variable="LLM_USER_PATH",
        ),
    ),
    "mimo-code": BuiltIn(
        "opencode:MiMoCode", Folders(("$XDG_DATA_HOME/mimocode",)), variables=("MIMOCODE_HOME", "MIMOCODE_DB")
    ),
    "mistral-vibe": BuiltIn("mistral_vibe:MistralVibe", Folders(("~/.vibe",), variable="VIBE_HOME")),
    "oh-my-pi": BuiltIn("pi:OhMyPi", Folders(("~/.omp/agent",))),
    "omo": BuiltIn("pi:Omo", Folders(("~/.omo/agent",), variable="OMO_CODING_AGENT_DIR")),
    "openclaw": BuiltIn(
        "openclaw:OpenClaw", Folders(("~/.openclaw", "~/.clawdbot", "~/.moltbot"), variable="OPENCLAW_STATE_DIR")
    ),
    "opencode": BuiltIn(
        "opencode:OpenCode",
        Folders(("$XDG_DATA_HOME/opencode",), home_variable="OPENCODE_TEST_HOME"),
        variables=("OPENCODE_DB",),
    ),
    "openhands": BuiltIn("openhands:OpenHands", Folders(("~/.openhands",), variable="OPENHANDS_PERSISTENCE_DIR")),
    "pi": BuiltIn(
        "pi:Pi",
        Folders(("~/.pi/agent",), variable="PI_CODING_AGENT_DIR"),
        others=(Folders((), variable="PI_CODING_AGENT_SESSION_DIR"),),
    ),
    "prime-agent": BuiltIn(
        "pi:PrimeAgent",
        Folders(("~/.prime/agent",), variable="PRIME_AGENT_CODING_AGENT_DIR"),
        others=(Folders((), variable="PRIME_AGENT_SESSION_DIR"),),
    ),
    "qclaw": BuiltIn("openclaw:QClaw", Folders(("~/.qclaw",))),
    "qwen-code": BuiltIn(
        "qwen_code:QwenCode",
        Folders(("~/.qwen",), variable="QWEN_HOME"),
        others=(Folders((), variable="QWEN_RUNTIME_DIR"),),
    ),
    "roo-code": BuiltIn("cline_tasks:RooCode", _EXTENSIONS, variables=(PORTABLE,)),
    "stepcode": BuiltIn("pi:StepCode", Folders(("~/.stepcode/agent",))),
    "vscode-copilot": BuiltIn("copilot_chat:CopilotChat", editor_homes(*VSCODE), variables=(PORTABLE,)),
    "zed": BuiltIn(
        "zed:Zed",
        Folders(("$XDG_DATA_HOME/zed", "~/Library/Application Support/Zed", "~/AppData/Local/Zed")),
    ),
    "zoo-code": BuiltIn("cline_tasks:ZooCode", _EXTENSIONS, variables=(PORTABLE,)),
}
"""Agent -> what is known of it without its package. Other packages cannot replace these."""


def may_be_here() -> Iterator[str]:
    """The names of the agents of which this machine may have a home. It has none of the others."""
    # Programs that share their places (extensions of the same editors) share the answer too.
    is_there = cache(is_anything_at)
    for name, each in BUILT_IN.items():
        if any(map(is_set, each.variables)) or any(map(is_there, (each.homes, *each.others))):
            yield name
