"""Silver against bronze, and against the source database."""
