"""Control state: ledger, leases, epochs, ticks. All of it can be rebuilt from Delta logs."""
