"""What several rooms of tests share: made histories, recorded logs, servers, agents that are played."""
