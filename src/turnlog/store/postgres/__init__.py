"""The store in PostgreSQL: a second engine behind `store.base.Store`, for the extra `turnlog[postgres]`.

The queries are those of `store.sqlite`, and native sessions are written by `store.writing`: `dialect` turns their SQL
into PostgreSQL's, for one team; `connection` lets them use the driver; `values` says how texts and integers are kept;
`schema` makes the tables. `search` is a copy of what is searched. Sessions of logs arrive by the change feed
(`store.feed`).
"""
