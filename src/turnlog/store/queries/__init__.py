"""The questions a SQLite store answers, one module a concept: functions from a connection to values of `store.base`.

They only read (but for `annotations`), hold no state and leave transactions to their caller.
"""
