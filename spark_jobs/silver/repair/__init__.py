"""Changes a silver table beside its stream: rebuild, reprocess, expire, forget, delete backfill."""
