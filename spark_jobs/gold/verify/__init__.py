"""Published tables against their SQL."""
