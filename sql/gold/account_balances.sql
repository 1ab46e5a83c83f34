/* gold
description: >
  Balance of each account, computed from all of its events. No earlier balance is needed, so a
  replay of the events gives the same table. The cast raises an error above 9,999,999,999.99; it
  never wraps.
owner: payments
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [payments]
columns:
  balance: Deposits minus withdrawals.
  events: Number of events of the account.
  last_event_at: Time of the latest event.
*/
SELECT
  e.account_id,
  CAST(SUM(CASE e.event WHEN 'withdrawn' THEN -e.amount ELSE e.amount END) AS DECIMAL(12, 2))
    AS balance,
  COUNT(*) AS events,
  MAX(e.event_time) AS last_event_at
FROM silver.account_events AS e
GROUP BY e.account_id
