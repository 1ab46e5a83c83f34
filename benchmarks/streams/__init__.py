"""Benchmarks of the streams: rates, latencies, upserts and memory, on their own stack."""
