/* silver
description: Account movements, one row per event.
owner: payments
tags: [payments]
*/
SELECT
  s.event_id,
  s.account_id,
  s.sequence,
  s.event,
  s.amount,
  s.event_time
FROM bronze.account_events AS s
