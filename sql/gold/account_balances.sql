/* gold
description: >
  The balance of each account, from all of its events since the first one. It needs no earlier
  balance, so replaying the events gives the same table.
owner: payments
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [payments]
columns:
  balance: What was deposited less what was withdrawn.
  events: How many events the account has.
  last_event_at: When the latest of them happened.
*/
SELECT
  e.account_id,
  CAST(SUM(CASE e.event WHEN 'withdrawn' THEN -e.amount ELSE e.amount END) AS DECIMAL(12, 2))
    AS balance,
  COUNT(*) AS events,
  MAX(e.event_time) AS last_event_at
FROM silver.account_events AS e
GROUP BY e.account_id
