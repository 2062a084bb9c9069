"""The machine's side of a hub's API: batches of the change feed, large contents, log files; see `routes`."""
