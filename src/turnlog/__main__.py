"""`python -m turnlog`: the same command as the installed `turnlog`."""

from turnlog.cli.main import main

if __name__ == "__main__":
    main()
