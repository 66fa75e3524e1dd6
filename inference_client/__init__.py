"""A small typed client for inference servers: streams answers, measures each call exactly once.

A plain library without a framework. Start at `client.Client`; values are in `types`, failures in `errors`.
"""
