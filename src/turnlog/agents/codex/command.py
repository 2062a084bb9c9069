"""The command line of Codex, as `codex exec --help` of 0.169.0 tells it."""

from turnlog.agents.codex.sources import BRANCH
from turnlog.agents.commands import SESSION, CommandForm, words

COMMAND = CommandForm(
    program="codex",
    resume=("resume",),
    prompted=("exec", "resume", "--skip-git-repo-check", SESSION, "-"),
    packages=("@openai/codex",),
    branch=BRANCH,
    subcommands=(("exec", "resume"), ("e", "resume"), ("exec",), ("e",), ("resume",), ()),
    resumes=frozenset({("exec", "resume"), ("e", "resume"), ("resume",)}),
    newest=words("--last"),
    model=words("-m --model"),
    other=words(
        "-c --config --enable --disable --local-provider -p --profile -s --sandbox -a --ask-for-approval",
        "-C --cd --add-dir --thread-source --cyber-access-program --output-schema --color -o",
        "--output-last-message -i --image",
    ),
)
