"""From agents to the store: one pass (`scan`)."""
