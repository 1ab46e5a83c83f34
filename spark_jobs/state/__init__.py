"""Control state: ledger, leases, epochs, ticks; all of it can be rebuilt from the Delta logs."""
