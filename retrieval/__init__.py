"""The retrieval tier: documents in, passages out, with permission inside every query."""
