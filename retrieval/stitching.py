"""The prompt, from its parts, within a budget. Pure."""
