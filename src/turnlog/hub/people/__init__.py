"""People of a hub: who they are, what they may do, whose sessions are and who reads them, and what was read.

Everything is in tables of PostgreSQL (`store/postgres/migrations`). Each class has the statements about one subject.
"""
