"""Programs that run in the environment of somebody else's client."""
