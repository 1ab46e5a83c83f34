"""Bronze to silver: typed, deduplicated, changes applied; what cannot be parsed is kept apart."""
