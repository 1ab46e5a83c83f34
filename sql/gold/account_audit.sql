/* gold
description: >
  Every event of every account with the balance after it, ordered by the account's sequence
  number instead of by arrival. A late event corrects the later balances.
grain: [account_id, sequence]
cluster_by: [account_id, sequence]
owner: payments
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [payments]
columns:
  amount: Amount of the event; never negative.
  balance_after: Balance of the account after this event.
*/
SELECT
  e.account_id,
  e.sequence,
  e.event,
  e.amount,
  CAST(
    SUM(CASE e.event WHEN 'withdrawn' THEN -e.amount ELSE e.amount END) OVER (
      PARTITION BY e.account_id
      ORDER BY e.sequence, e.event_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS DECIMAL(12, 2)
  ) AS balance_after,
  e.event_time
FROM silver.account_events AS e
