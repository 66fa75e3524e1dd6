"""Parts for tests and load runs: a server that answers, and fails, as it is told."""
