"""Every turn of every coding agent as one typed, lossless, part-level history.

Importing this package is cheap: it pulls in no web, command-line, pricing or database package.
"""

__version__ = "0.1.0"
