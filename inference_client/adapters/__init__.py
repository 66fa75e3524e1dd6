"""Wire formats: a request into bytes, bytes into events. No IO anywhere in this package.

Each file with an `ADAPTER` is one format, whole; `kinds.py` finds them.
"""
