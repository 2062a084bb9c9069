"""What commands printed of commits and pull requests, as git 2.39 and gh print it."""

from __future__ import annotations

import pytest

from turnlog.commits.printed import PullRequest, printed_by, pull_request
from turnlog.model import TextPart, ToolCallPart, ToolKind, ToolResult, ToolState
from turnlog.model.codec import to_json


def call(
    command: str, output: str, *, state: ToolState = ToolState.OUTPUT_AVAILABLE, tool: str = "Bash"
) -> ToolCallPart:
    kind = ToolKind.EXECUTE if tool == "Bash" else ToolKind.OTHER
    result = ToolResult(id="r", content=(TextPart(text=output),))
    return ToolCallPart(
        tool_call_id="c", tool_name=tool, kind=kind, input=to_json({"command": command}), state=state, results=(result,)
    )


MADE = "[main 0a1b2c3] Fix it\n 1 file changed, 1 insertion(+)\n"


@pytest.mark.parametrize(
    ("command", "output", "deed", "hash"),
    [
        ("git commit -m 'Fix it'", MADE, "committed", "0a1b2c3"),
        ("npm test && git -C /work -c user.name=A commit -qam x; true", MADE, "committed", "0a1b2c3"),
        ("git commit --amend --no-edit", MADE, "amended", "0a1b2c3"),
        ("git commit -m x", "[main (root-commit) 0a1b2c3d4e] Begin\n", "committed", "0a1b2c3d4e"),
        ("git commit -m x", "[detached HEAD 0a1b2c3] Fix it\n", "committed", "0a1b2c3"),
        ("git cherry-pick 99aa88b", "[main 0a1b2c3] Fix it\n Date: Mon\n", "picked", "0a1b2c3"),
        ("git revert HEAD", '[main 0a1b2c3] Revert "Fix it"\n', "reverted", "0a1b2c3"),
        ("git push", "To forge\n   1111111..2222222  main -> main\n", "pushed", "2222222"),
        ("git push -f", "To forge\n + 1111111...2222222 main -> main (forced update)\n", "pushed", "2222222"),
        ("git commit -qm 'Fix it' && git rev-parse HEAD", f"{'0a' * 20}\n", "committed", "0a" * 20),
    ],
)
def test_a_hash_that_the_command_made_is_read(command: str, output: str, deed: str, hash: str) -> None:
    [printed] = printed_by(call(command, output))
    assert (printed.deed, printed.hash) == (deed, hash)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git log --oneline", "0a1b2c3 Fix it\n"),
        ("git show HEAD", f"commit {'0a' * 20}\n"),
        ("cat notes.txt", MADE),
        ("git commit -m x", "On branch main\nnothing to commit, working tree clean\n"),
        ("git commit -qm x && cat hashes", "0a1b2c3 Fix it\n"),
        ("gh pr view 12", "https://forge.example/acme/shop/pull/12\n"),
        ("gh pr create", 'a pull request for branch "x" already exists:\nhttps://forge.example/acme/shop/pull/12\n'),
        ("gh pr create", "https://forge.example/acme/shop/pull/new/branch\n"),
    ],
)
def test_what_a_command_only_shows_is_not_believed(command: str, output: str) -> None:
    assert printed_by(call(command, output)) == []


def test_a_call_that_did_not_run_made_nothing() -> None:
    for state in (ToolState.OUTPUT_DENIED, ToolState.ABORTED):
        assert printed_by(call("git commit -m x", MADE, state=state)) == []


def test_several_commits_of_one_command_have_their_own_deeds() -> None:
    output = "[main 0a1b2c3] One\n[main 4d5e6f7] Two\n"
    found = printed_by(call("git commit -m One && git commit --amend -m Two", output))
    assert [(each.deed, each.hash, each.subject) for each in found] == [
        ("committed", "0a1b2c3", "One"),
        ("amended", "4d5e6f7", "Two"),
    ]


@pytest.mark.parametrize(
    ("tool", "command", "output"),
    [
        ("Bash", "gh pr create --fill", "Creating pull request\nhttps://forge.example/acme/shop/pull/12\n"),
        ("Bash", "glab mr create", "https://forge.example/acme/shop/-/merge_requests/12\n"),
        ("mcp__forge__create_pull_request", "", '{"html_url":"https://forge.example/acme/shop/pull/12"}'),
    ],
)
def test_an_opened_pull_request_is_read(tool: str, command: str, output: str) -> None:
    [printed] = printed_by(call(command, output, tool=tool))
    assert printed.deed == "opened"
    assert pull_request(printed.url or "") == PullRequest("forge.example/acme/shop", 12)
