"""What to refresh, how and why: pure values, no Spark."""
