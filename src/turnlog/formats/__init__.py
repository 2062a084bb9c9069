"""Histories as documents to keep and to share: `markdown` and `html` for people, `json` for programs.

Pure: a session and its history (`Store.history`, `read_session(...).events`) in, pieces of text out, every tool output
among them. Where a history comes from, and what is taken out of it before, is `turnlog.exports`' business.
"""
