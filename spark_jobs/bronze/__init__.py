"""Kafka to bronze: every record as received, exactly once."""
