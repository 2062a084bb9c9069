"""What a session's own commands printed of commits and pull requests: hashes that `git` made, addresses of `gh`.

Only a command that makes something is believed: a hash that `git log` shows, or an address in a text, says nothing of
who made it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from turnlog.model import ToolCallPart, ToolKind, ToolState
from turnlog.model.parts import call_summary

Deed: TypeAlias = Literal["committed", "amended", "picked", "reverted", "merged", "pushed", "opened"]
"""What a session did: it made a commit in one of five ways, pushed one, or opened a pull request."""

QUERY: Final = "git OR gh OR glab"
"""Words of which the input of each such command has one, in the language of search."""


class Printed(NamedTuple):
    """A commit or pull request that a call printed."""

    deed: Deed
    hash: str | None = None
    """The hash of a commit, often abbreviated."""
    since: str | None = None
    """Of a push: the hash that the branch had before."""
    subject: str | None = None
    """The commit's subject, where it was printed."""
    branch: str | None = None
    url: str | None = None
    """Address of a pull request."""
    is_certain: bool = True
    """False: the command made a commit quietly and then printed a hash; the subject must be in the command."""


class PullRequest(NamedTuple):
    """A pull or merge request of a forge."""

    repository: str
    """`host/owner/name`, in lower case."""
    number: int

    @property
    def query(self) -> str:
        """The phrase by which search finds its address."""
        path = self.repository.partition("/")[2]
        return f'"{path}/pull/{self.number}" OR "{path}/-/merge_requests/{self.number}"'


_URL = re.compile(
    r"https?://(?P<host>[\w.-]+(?::\d+)?)/(?P<path>[\w.-]+(?:/[\w.-]+)+?)/(?:pull|pulls|-/merge_requests)/(?P<number>\d+)"
    r"(?![\w-])"
)


def pull_request(url: str) -> PullRequest | None:
    """The pull request that an address names."""
    found = _URL.search(url)
    return None if found is None else PullRequest(f"{found['host']}/{found['path']}".lower(), int(found["number"]))


_OPTIONS = r"(?:\s+(?:-[Cc]\s+(?:\"[^\"]*\"|'[^']*'|\S+)|--?[\w-]+(?:=\S+)?))*"
_GIT = re.compile(
    rf"\bgit{_OPTIONS}\s+(?P<verb>commit|cherry-pick|revert|merge|am|rebase|pull|push)\b(?P<rest>[^\n;&|]*)"
)
_PR_CREATE = re.compile(r"\bgh\s+pr\s+(?:create|new)\b|\bglab\s+mr\s+(?:create|new)\b")
_PR_TOOL = re.compile(r"create_(?:pull|merge)_request$")

_MADE = re.compile(
    r"^\[(?P<branch>[^\]\n]+?)(?: \([^)\n]*\))? (?P<hash>[0-9a-f]{7,64})\] (?P<subject>.+)$", re.MULTILINE
)
_PUSHED = re.compile(
    r"^[ +*]*\s*(?P<old>[0-9a-f]{7,64})\.{2,3}(?P<new>[0-9a-f]{7,64})\s+(?P<branch>\S+)\s+->", re.MULTILINE
)

_SHOWS_HEAD = re.compile(
    rf"\bgit{_OPTIONS}\s+(?:rev-parse(?:\s+--short(?:=\d+)?)?\s+HEAD\b"
    r"|(?:log|show)\b[^\n;&|]*(?:\s-1\b|\s-n\s?1\b|--max-count=1\b|--stat\b|-s\b))"
)
_HEAD = re.compile(r"^(?:commit )?(?P<hash>[0-9a-f]{7,64})(?: \([^)\n]*\))?(?: (?P<subject>.+))?$", re.MULTILINE)

_DEEDS: Final[dict[str, Deed]] = {
    "commit": "committed",
    "cherry-pick": "picked",
    "revert": "reverted",
    "merge": "merged",
    "am": "committed",
    "rebase": "committed",
    "pull": "merged",
}


def printed_by(call: ToolCallPart) -> list[Printed]:
    """The commits and pull requests that a call made, as its output says; none for a call that failed to run."""
    if opens_pull_request(call.tool_name):
        return list(_opened(call.output_text)) if call.state is ToolState.OUTPUT_AVAILABLE else []
    if call.kind is not ToolKind.EXECUTE or call.state in (ToolState.OUTPUT_DENIED, ToolState.ABORTED):
        return []
    command = call_summary(call) or call.input_text or ""
    if not command:
        return []
    # A chain may fail after its commit was made: what git printed counts all the same.
    return list(_printed(command, _output(call)))


def opens_pull_request(tool_name: str) -> bool:
    """Whether a tool opens a pull or merge request, as those of the forges' MCP servers are called."""
    return _PR_TOOL.search(tool_name) is not None


def _output(call: ToolCallPart) -> str:
    errors = [result.error_text for result in call.results if result.error_text]
    return "\n".join([call.output_text, *errors])


def _printed(command: str, output: str) -> Iterator[Printed]:
    verbs = [(found["verb"], found["rest"]) for found in _GIT.finditer(command)]
    making = [(verb, rest) for verb, rest in verbs if verb in _DEEDS]
    made = list(_MADE.finditer(output)) if making else []
    for number, found in enumerate(made):
        # As many lines as commands: each has its own. Otherwise the last command is as good as any.
        verb, rest = making[number] if len(made) == len(making) else making[-1]
        deed: Deed = "amended" if verb == "commit" and "--amend" in rest else _DEEDS[verb]
        yield Printed(deed, found["hash"], None, found["subject"].strip(), found["branch"])
    if any(verb == "commit" for verb, _ in making) and not made and _SHOWS_HEAD.search(command):
        for found in _HEAD.finditer(output):
            yield Printed("committed", found["hash"], None, found["subject"], None, None, False)
            break
    if any(verb == "push" for verb, _ in verbs):
        for found in _PUSHED.finditer(output):
            yield Printed("pushed", found["new"], found["old"], None, found["branch"])
    if _PR_CREATE.search(command) and "already exists" not in output:
        yield from _opened(output)


def _opened(output: str) -> Iterator[Printed]:
    """The address that was printed last: what comes before it may be a template or a warning."""
    found = list(_URL.finditer(output))
    if found:
        yield Printed("opened", url=found[-1][0])
