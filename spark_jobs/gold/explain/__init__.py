"""Explains the next refresh and its SQL, and estimates the impact of a change."""
