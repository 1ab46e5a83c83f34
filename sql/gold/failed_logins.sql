/* gold
description: >
  IP addresses with five or more failed sign-in attempts within one minute. Addresses with fewer
  failures have no row; a late failure can add one.
grain: [ip, window_start]
owner: security
refresh: micro-batch
every: 5 minutes
freshness: 15 minutes
tags: [security]
columns:
  window_start: Start of the one-minute window.
  failures: Number of failed attempts; five or more.
*/
SELECT
  l.ip,
  WINDOW(l.event_time, '1 minute').start AS window_start,
  COUNT(*) AS failures
FROM silver.login_attempts AS l
WHERE NOT l.success
GROUP BY l.ip, WINDOW(l.event_time, '1 minute')
HAVING COUNT(*) >= 5
