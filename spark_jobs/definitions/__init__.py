"""What the project's files say, checked and typed; no Spark, no SQL semantics."""
