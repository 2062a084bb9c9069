"""Where histories are kept: `open_store()` and what it answers. SQLite is imported when a store is opened."""
