"""Keeps streaming queries running, and reports how they go."""
