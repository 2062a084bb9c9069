"""What only some systems have, each behind a function that works on all of them.

No other code calls what Windows or macOS lacks: users, signals, locks, process groups, `/proc`, inotify. Where a system
lacks something, the function does what comes closest, and says so. Modules here import nothing that costs time: hooks
and status lines load them.
"""
