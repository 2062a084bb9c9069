"""The hub: one place for the sessions of many machines and people. It needs the extra `turnlog[hub]`.

`people` knows who they are, what they may do and who may read what; `sync` takes what machines push, and `machine` is
the other end of it; `app` is the HTTP API, served for each caller; `serve` runs it.
"""
