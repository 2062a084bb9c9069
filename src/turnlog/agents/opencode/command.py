"""The command line of OpenCode 1.18."""

from turnlog.agents.commands import SESSION, CommandForm, words

COMMAND = CommandForm(
    program="opencode",
    resume=("--session",),
    prompted=("run", "--session", SESSION),
    packages=("opencode-ai",),
    subcommands=(("run",), ()),
    joins_words=True,
    model=words("-m --model"),
    session=words("-s --session"),
    other=words(
        "--agent --format -f --file --title --attach --port --variant --log-level --dir --command",
        "--prompt -p --password -u --username",
    ),
)
