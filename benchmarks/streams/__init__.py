"""What the streams reach: rates, latencies, upserts and memory, on a stack of their own."""
