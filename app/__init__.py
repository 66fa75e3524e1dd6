"""The web tier of Tessera."""
