/* gold
description: >
  Number of active days and seconds watched per user over the last seven days by the clock.
  Events older than seven days are removed, even if no new event arrives.
owner: video
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [video]
columns:
  active_days: Number of days, in UTC, with at least one event.
  watch_seconds: Seconds watched in the last seven days.
*/
SELECT
  v.user_id,
  COUNT(DISTINCT CAST(v.event_time AS DATE)) AS active_days,
  SUM(v.watch_seconds) AS watch_seconds
FROM silver.view_events AS v
WHERE v.event_time > CURRENT_TIMESTAMP() - INTERVAL 7 DAYS AND v.event_time <= CURRENT_TIMESTAMP()
GROUP BY v.user_id
