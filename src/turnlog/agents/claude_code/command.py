"""The command line of Claude Code, as `claude --help` of 2.1.329 tells it."""

from turnlog.agents.commands import SESSION, CommandForm, words

COMMAND = CommandForm(
    program="claude",
    resume=("--resume",),
    prompted=("-p", "--resume", SESSION),
    packages=("@anthropic-ai/claude-code",),
    model=words("--model"),
    system_prompt=words("--system-prompt --append-system-prompt"),
    session=words("-r --resume --session-id"),
    other=words(
        "--agent --agents --autocompact --debug-file --effort --environment --fallback-model",
        "--input-format --json-schema --max-budget-usd --max-turns --name -n --output-format",
        "--permission-mode --permission-prompt-tool --permission-prompts --plugin-dir --plugin-url",
        "--remote-control-session-name-prefix --resume-session-at --setting-sources --settings",
        "--system-prompt-file --append-system-prompt-file --system-prompt-snapshot",
    ),
    lists=words(
        "--add-dir --allowedTools --allowed-tools --betas --disallowedTools --disallowed-tools --file",
        "--mcp-config --tools",
    ),
)
