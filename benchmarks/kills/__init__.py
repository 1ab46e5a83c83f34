"""Checks silver after thousands of transactions during which parts were killed."""
