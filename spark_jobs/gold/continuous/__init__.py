"""Continuous views: refreshed as soon as their inputs move."""
