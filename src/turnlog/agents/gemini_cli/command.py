"""The command line of Gemini CLI 0.61."""

from turnlog.agents.commands import SESSION, CommandForm, words

COMMAND = CommandForm(
    program="gemini",
    resume=("--resume",),
    prompted=("--resume", SESSION),
    packages=("@google/gemini-cli",),
    joins_words=True,
    prompt=words("-p --prompt -i --prompt-interactive"),
    model=words("-m --model"),
    session=words("-r --resume"),
    other=words("--approval-mode -o --output-format --session-file --delete-session"),
    lists=words("--policy --allowed-mcp-server-names --allowed-tools -e --extensions --include-directories"),
)
