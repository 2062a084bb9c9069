"""The command, however it is called: the installed `turnlog`, and `python -m turnlog`.

Imports nothing by itself, so that Ctrl-C ends the command quietly while the rest of it is still being imported too.
"""

import sys


def main() -> None:
    """Run the command that the shell asked for."""
    try:
        if sys.argv[1:] == ["statusline"]:
            from turnlog.cli.status_text import answer_quickly

            if answer_quickly():
                return
        from turnlog.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("turnlog: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
