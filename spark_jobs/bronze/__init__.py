"""Kafka to bronze: every record as it was received, exactly once."""
