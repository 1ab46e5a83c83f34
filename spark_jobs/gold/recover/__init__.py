"""Replay, rollback, release and recomputation on request."""
