"""The only place that speaks Delta, and the one truth of Spark's configuration."""
