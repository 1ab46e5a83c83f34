"""A refresh, step by step: observe, stage, audit, publish, and the ledger's record of it."""
