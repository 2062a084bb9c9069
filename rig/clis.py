"""How each agent is started without questions, without news and without its own servers, and what it is known to do
in its own way. A difference that is listed here is a fact about the agent; any other is a finding.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from script import FAILING, PROMPT

from turnlog.model.parts import ToolState


@dataclass(frozen=True, kw_only=True)
class Cli:
    """An agent's program. `{URL}` in `environment` and `files` becomes the model server's address."""

    name: str
    package: str
    program: str
    arguments: list[str]
    home: str
    """Where its logs lie, below HOME."""
    tool: str
    """Its shell tool, which takes the command as `argument` and also wants `extra`."""
    argument: str
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    failing: str = FAILING
    """The command that fails; OpenHands keeps one shell, which must not end."""
    takes_list: bool = False
    """Its shell tool takes a list of commands."""
    makes_calls_at_once: bool = True
    """It makes all calls of an answer, and not only the first."""
    asks_again: int = 0
    """How often it asks the model once more after an answer without a call."""
    environment: dict[str, str] = field(default_factory=dict[str, str])
    files: dict[str, str] = field(default_factory=dict[str, str])
    """What must be in HOME before it starts."""
    prompt: str = PROMPT
    """The prompt as it is sent to the model, and logged."""
    failed: ToolState = ToolState.OUTPUT_ERROR
    """What the agent calls a command with an exit code that is not 0."""
    history_tool: str = ""
    """What the model calls the tool `search_history` of turnlog's server; empty if turnlog cannot add itself there."""
    history_namespace: str | None = None
    history_extra: dict[str, Any] = field(default_factory=dict[str, Any])
    """What that tool also wants."""
    waits_for_servers: bool = True
    """Whether it asks the model only once servers of the Model Context Protocol answer."""
    history_arguments: list[str] | None = None
    """The arguments where those of `arguments` do not permit that tool."""
    resume: list[str] = field(default_factory=list[str])
    """The arguments that send `{PROMPT}` in the session `{SESSION}`; empty if no session can be handed to it."""
    renames: dict[str, str] = field(default_factory=dict[str, str])
    """Names of tools in a history -> what it sends in their place."""
    serve: list[str] = field(default_factory=list[str])
    """The arguments with which it listens for prompts at `{PORT}`."""
    makes_home: list[str] = field(default_factory=list[str])
    """The arguments of a command after which its home is as sessions are written to it."""
    tells_reasoning: bool = True
    """Whether it logs reasoning tokens: the events of Anthropic Messages as sent here do not tell them apart."""
    keeps_thoughts: bool = True
    """Whether it logs the text of reasoning."""
    knows_exit_codes: bool = True
    """Whether its log has exit codes: a tool that is given as an argument has none."""
    counts_calls: bool = True
    """Whether it logs the tokens of each call, and not only those of a session."""
    loses_outputs: bool = False
    """Whether it may log, and tell the model, of one of two commands at once that its output is empty."""
    replays: bool = True
    """Whether its cassette is played back to it."""
    is_python: bool = False
    """Its package is in an environment of its own, from PyPI."""


_CODEX = """model = "gpt-5.5"
model_provider = "rig"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
# It waits five seconds for a network before it ends.
enabled = false

[model_providers.rig]
name = "rig"
base_url = "{URL}/v1"
wire_api = "responses"
env_key = "RIG_KEY"
"""

_GOOSE = """
GOOSE_TELEMETRY_ENABLED: false
extensions:
  developer: {type: builtin, name: developer, bundled: true, enabled: true, timeout: 300}
"""

_GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
}

_OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    "permission": {"*": "allow"},
    "provider": {
        "rig": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{URL}/v1", "apiKey": "none"},
            "models": {
                "rig": {
                    "reasoning": True,
                    "tool_call": True,
                    # Of a model that takes texts only it keeps the images to itself.
                    "attachment": True,
                    "modalities": {"input": ["text", "image"], "output": ["text"]},
                    "limit": {"context": 200000, "output": 9000},
                }
            },
        }
    },
}

_PI = {
    "providers": {
        "rig": {
            "baseUrl": "{URL}/v1",
            "api": "openai-completions",
            "apiKey": "none",
            "models": [
                {"id": "rig", "reasoning": True, "input": ["text", "image"], "contextWindow": 200000, "maxTokens": 9000}
            ],
        }
    }
}

_VIBE = """active_model = "rig"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "rig"
api_base = "{URL}/v1"
api_key_env_var = "RIG_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "rig"
provider = "rig"
alias = "rig"
thinking = "high"
"""

_CONTINUE = """name: rig
version: 0.0.1
schema: v1
models:
  - name: rig
    provider: openai
    model: rig
    apiBase: {URL}/v1
    apiKey: none
    roles: [chat]
    capabilities: [tool_use]
"""

_KIMI = """default_model = "rig"
telemetry = false

[providers.rig]
type = "openai"
base_url = "{URL}/v1"
api_key = "none"

[models.rig]
provider = "rig"
model = "rig"
max_context_size = 131072
capabilities = ["thinking", "tool_use"]
"""

_DROID = {
    "customModels": [
        {
            "model": "rig",
            "displayName": "Rig",
            "id": "custom:Rig-0",
            "index": 0,
            "baseUrl": "{URL}/v1",
            "apiKey": "none",
            "provider": "generic-chat-completion-api",
            "maxOutputTokens": 8192,
        }
    ],
    "cloudSessionSync": False,
}

_LLM = """- model_id: rig
  model_name: rig
  api_base: "{URL}/v1"
  supports_tools: true
"""

_SHELL_OF_LLM = """import subprocess

def shell(command: str) -> str:
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}\\n{done.stdout}{done.stderr}")
    return done.stdout
"""
"""llm brings no tool that runs commands: it takes one as an argument."""

_HERMES = """model:
  default: rig
  provider: custom
  base_url: {URL}/v1
  api_key: none
  context_length: 131072
"""

_GROK = """[cli]
auto_update = false
[features]
telemetry = false
feedback = false
remote_fetch = false
[models]
default = "rig"
[model.rig]
model = "rig"
base_url = "{URL}/v1"
name = "Rig"
api_key = "none"
context_window = 128000
"""

_CLINE = {
    "version": 1,
    "lastUsedProvider": "openai-compatible",
    "modes": {},
    "providers": {
        "openai-compatible": {
            "settings": {
                "provider": "openai-compatible",
                "apiKey": "none",
                "model": "rig",
                "baseUrl": "{URL}/v1",
            },
            "updatedAt": "2026-11-26T12:00:00.000Z",
            "tokenSource": "manual",
        }
    },
}

_QWEN = {
    "telemetry": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
    # An agent of its own that collects memories would ask the model, too.
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
    # Images are sent to a model that is said to take them.
    "model": {"generationConfig": {"modalities": {"image": True}}},
}

CLIS = [
    Cli(
        name="claude-code",
        package="@anthropic-ai/claude-code",
        program="claude",
        # Root may not skip permissions, so the one tool is allowed by name.
        arguments=["-p", "--allowedTools", "Bash", "--", PROMPT],
        home=".claude",
        tool="Bash",
        argument="command",
        extra={"description": "Try"},
        environment={
            "ANTHROPIC_BASE_URL": "{URL}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
        history_tool="mcp__turnlog__search_history",
        renames={"Task": "Agent"},
        resume=["-p", "--resume", "{SESSION}", "--allowedTools", "Bash", "--", "{PROMPT}"],
        history_arguments=["-p", "--allowedTools", "mcp__turnlog__search_history", "--", PROMPT],
        tells_reasoning=False,
    ),
    Cli(
        name="codex",
        package="@openai/codex",
        program="codex",
        arguments=["exec", "--skip-git-repo-check", PROMPT],
        home=".codex",
        tool="exec_command",
        argument="cmd",
        environment={"RIG_KEY": "none"},
        files={".codex/config.toml": _CODEX},
        history_tool="search_history",
        history_namespace="mcp__turnlog",
        # Since 0.171.
        waits_for_servers=False,
        resume=["exec", "resume", "--skip-git-repo-check", "{SESSION}", "{PROMPT}"],
    ),
    Cli(
        name="copilot-cli",
        package="@github/copilot",
        program="copilot",
        arguments=["-p", PROMPT, "--allow-all-tools", "--no-auto-update", "--log-level", "none"],
        home=".copilot",
        tool="bash",
        argument="command",
        extra={"description": "Try", "initial_wait": 5, "mode": "sync"},
        environment={
            "COPILOT_MODEL": "gpt-5.4",
            "COPILOT_OFFLINE": "true",
            # It replaces the key in what it prints and logs, wherever that occurs.
            "COPILOT_PROVIDER_API_KEY": "key-of-the-rig",
            "COPILOT_PROVIDER_BASE_URL": "{URL}/v1",
        },
        history_tool="turnlog-search_history",
    ),
    Cli(
        name="gemini-cli",
        package="@google/gemini-cli",
        program="gemini",
        arguments=["--yolo", "-m", "gemini-2.5-pro", "-p", PROMPT],
        home=".gemini",
        tool="run_shell_command",
        argument="command",
        environment={
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": "{URL}",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        files={".gemini/settings.json": json.dumps(_GEMINI)},
        history_tool="mcp_turnlog_search_history",
        resume=["--resume", "{SESSION}", "--yolo", "-m", "gemini-2.5-pro", "-p", "{PROMPT}"],
        failed=ToolState.OUTPUT_AVAILABLE,
    ),
    Cli(
        name="opencode",
        package="opencode-ai",
        program="opencode",
        arguments=["run", "-m", "rig/rig", PROMPT],
        home=".local/share/opencode",
        tool="bash",
        argument="command",
        extra={"description": "Try"},
        environment={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        files={".config/opencode/opencode.json": json.dumps(_OPENCODE)},
        history_tool="turnlog_search_history",
        resume=["run", "-s", "{SESSION}", "-m", "rig/rig", "{PROMPT}"],
        serve=["serve", "--hostname", "127.0.0.1", "--port", "{PORT}"],
        makes_home=["session", "list"],
        # It puts an argument with spaces between quotes.
        prompt=f'"{PROMPT}"',
        failed=ToolState.OUTPUT_AVAILABLE,
    ),
    Cli(
        name="pi",
        package="@earendil-works/pi-coding-agent",
        program="pi",
        arguments=["--provider", "rig", "--model", "rig", "--thinking", "medium", "-p", PROMPT],
        home=".pi/agent",
        tool="bash",
        argument="command",
        environment={"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"},
        resume=[
            *("--provider", "rig", "--model", "rig", "--thinking", "medium"),
            *("--session", "{SESSION}", "-p", "{PROMPT}"),
        ],
        files={".pi/agent/models.json": json.dumps(_PI)},
    ),
    Cli(
        name="mistral-vibe",
        package="mistral-vibe",
        program="vibe",
        is_python=True,
        arguments=["-p", PROMPT, "--auto-approve", "--trust"],
        home=".vibe",
        tool="bash",
        argument="command",
        environment={"RIG_KEY": "none", "VIBE_ENABLE_TELEMETRY": "false"},
        files={".vibe/config.toml": _VIBE},
        tells_reasoning=False,
        replays=False,
    ),
    Cli(
        name="llm",
        package="llm",
        program="llm",
        is_python=True,
        arguments=["-m", "rig", "--key", "none", "--functions", _SHELL_OF_LLM, "--chain-limit", "9", PROMPT],
        home=".config/io.datasette.llm",
        tool="shell",
        argument="command",
        files={".config/io.datasette.llm/extra-openai-models.yaml": _LLM},
        keeps_thoughts=False,
        knows_exit_codes=False,
        replays=False,
    ),
    Cli(
        name="goose",
        # `@aaif/goose` is a program for the terminal that starts this one.
        package="@aaif/goose-binary-linux-x64",
        program="goose-binary-linux-x64",
        arguments=["run", "-t", PROMPT],
        home=".local/share/goose",
        tool="shell",
        argument="command",
        environment={
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_MODE": "auto",
            "GOOSE_MODEL": "rig",
            "GOOSE_PROVIDER": "openai",
            "OPENAI_API_KEY": "none",
            "OPENAI_HOST": "{URL}",
        },
        files={".config/goose/config.yaml": _GOOSE},
        tells_reasoning=False,
        replays=False,
    ),
    Cli(
        name="continue",
        package="@continuedev/cli",
        program="cn",
        arguments=["--config", "../.continue/config.yaml", "--auto", "-p", PROMPT],
        home=".continue",
        tool="Bash",
        argument="command",
        environment={"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_ENABLE_TELEMETRY": "0"},
        files={".continue/config.yaml": _CONTINUE},
        keeps_thoughts=False,
        replays=False,
    ),
    Cli(
        name="qwen-code",
        package="@qwen-code/qwen-code",
        program="qwen",
        arguments=["--auth-type", "openai", "-m", "rig", "-y", PROMPT],
        home=".qwen",
        tool="run_shell_command",
        argument="command",
        extra={"description": "Try", "is_background": False},
        environment={
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": "{URL}/v1",
            "OPENAI_MODEL": "rig",
            "QWEN_TELEMETRY_ENABLED": "false",
            "NO_UPDATE_NOTIFIER": "1",
        },
        files={".qwen/settings.json": json.dumps(_QWEN)},
        history_tool="mcp__turnlog__search_history",
        resume=["--auth-type", "openai", "-m", "rig", "-y", "--resume", "{SESSION}", "-p", "{PROMPT}"],
        loses_outputs=True,
        replays=False,
    ),
    Cli(
        name="kimi-code",
        package="@moonshot-ai/kimi-code",
        program="kimi",
        arguments=["-p", PROMPT],
        home=".kimi-code",
        tool="Bash",
        argument="command",
        environment={"KIMI_DISABLE_TELEMETRY": "1"},
        files={".kimi-code/config.toml": _KIMI},
        tells_reasoning=False,
        replays=False,
    ),
    Cli(
        name="droid",
        package="droid",
        program="droid",
        arguments=["exec", "--skip-permissions-unsafe", "-m", "custom:Rig-0", PROMPT],
        home=".factory",
        tool="Execute",
        argument="command",
        extra={"summary": "Try", "riskLevel": "low", "riskLevelReason": "safe"},
        environment={
            "FACTORY_API_KEY": "fk-none",
            "FACTORY_API_BASE_URL": "{URL}",
            "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false",
        },
        files={".factory/settings.json": json.dumps(_DROID)},
        history_tool="turnlog___search_history",
        waits_for_servers=False,
        counts_calls=False,
        replays=False,
    ),
    Cli(
        name="kilo",
        package="@kilocode/cli",
        program="kilo",
        arguments=["run", "--auto", "-m", "rig/rig", PROMPT],
        home=".local/share/kilo",
        tool="bash",
        argument="command",
        extra={"description": "Try"},
        environment={
            "KILO_DISABLE_AUTOUPDATE": "1",
            "KILO_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "KILO_TELEMETRY_LEVEL": "off",
        },
        files={".config/kilo/kilo.json": json.dumps(_OPENCODE)},
        prompt=f'"{PROMPT}"',
        failed=ToolState.OUTPUT_AVAILABLE,
        history_tool="turnlog_search_history",
        resume=["run", "--auto", "-m", "rig/rig", "-s", "{SESSION}", "{PROMPT}"],
        serve=["serve", "--hostname", "127.0.0.1", "--port", "{PORT}"],
        makes_home=["session", "list"],
        replays=False,
    ),
    Cli(
        name="cline",
        package="cline",
        program="cline",
        arguments=["-P", "openai-compatible", "-m", "rig", "-k", "none", "--thinking", "medium", PROMPT],
        home=".cline/data",
        tool="run_commands",
        argument="commands",
        takes_list=True,
        environment={"CLINE_TELEMETRY": "0", "DO_NOT_TRACK": "1"},
        files={".cline/data/settings/providers.json": json.dumps(_CLINE)},
        tells_reasoning=False,
        replays=False,
    ),
    Cli(
        name="openhands",
        package="openhands",
        program="openhands",
        is_python=True,
        arguments=["--headless", "--yolo", "--override-with-envs", "-t", PROMPT],
        home=".openhands",
        tool="terminal",
        argument="command",
        extra={"summary": "Try", "security_risk": "LOW"},
        failing="echo alas >&2; (exit 3)",
        environment={
            "LLM_API_KEY": "none",
            "LLM_BASE_URL": "{URL}/v1",
            "LLM_MODEL": "openai/rig",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "OPENHANDS_SUPPRESS_BANNER": "1",
            "DO_NOT_TRACK": "1",
        },
        history_tool="search_history",
        history_extra={"summary": "Look", "security_risk": "LOW"},
        replays=False,
    ),
    Cli(
        name="gptme",
        package="gptme",
        program="gptme",
        is_python=True,
        arguments=["--non-interactive", "--name", "rig", "--tool-format", "tool", "-m", "local/rig", PROMPT],
        home=".local/share/gptme",
        tool="shell",
        argument="command",
        makes_calls_at_once=False,
        # Without a terminal it wants the tool `complete` to be called at the end.
        asks_again=2,
        environment={"OPENAI_BASE_URL": "{URL}/v1", "OPENAI_API_KEY": "none"},
        replays=False,
    ),
    Cli(
        name="hermes",
        package="hermes-agent",
        program="hermes",
        is_python=True,
        arguments=["chat", "--yolo", "-q", PROMPT],
        home=".hermes",
        tool="terminal",
        argument="command",
        files={".hermes/config.yaml": _HERMES},
        counts_calls=False,
        replays=False,
    ),
    Cli(
        name="grok-build",
        package="grok-cli-bin",
        program="grok",
        is_python=True,
        arguments=["-p", PROMPT, "-m", "rig", "--always-approve"],
        home=".grok",
        tool="run_terminal_command",
        argument="command",
        extra={"description": "Try"},
        files={".grok/config.toml": _GROK},
        counts_calls=False,
        history_tool="turnlog__search_history",
        replays=False,
    ),
]

TAKERS = [cli for cli in CLIS if cli.resume]
"""The agents that sessions are handed to."""
