"""A Model Context Protocol server: coding agents search and read the history of earlier sessions.

`History` answers each question as text that fits into a number of tokens, and `server` offers these answers as tools
and resources. It needs the extra `turnlog[mcp]`.
"""
