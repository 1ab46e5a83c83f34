"""The quality gate: checks a staged result with a Great Expectations suite, and gives a verdict."""
