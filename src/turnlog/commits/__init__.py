"""Which session, turn and prompt a commit, a pull request or a line of a file came from.

Links come from the logs alone: from what a session's own `git` and `gh` printed, and from the lines that it wrote. A
clone is only read (`repository`). Nothing is stored: `links` and `work` find links when they are asked for.
"""
