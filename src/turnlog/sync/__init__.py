"""From agents to the store: one pass (`scan`), and following what is written (`watch`)."""
