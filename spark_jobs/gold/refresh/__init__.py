"""The steps of a refresh: observe, stage, audit, publish; and its rows in the ledger."""
