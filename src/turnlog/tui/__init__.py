"""Sessions on a whole terminal: search, read, go on, hand over.

`app.run` is all that is called from outside. It needs the extra `turnlog[tui]` (Textual). `first_paint` shows the list
before Textual is imported, which takes longer than everything else.
"""
