/* gold
description: >
  Addresses from which five or more attempts to sign in failed within one minute. A group below
  five is not there; one late failure can bring it in.
grain: [ip, window_start]
owner: security
refresh: micro-batch
every: 5 minutes
freshness: 15 minutes
tags: [security]
columns:
  window_start: The window is the minute from here on.
  failures: How many attempts failed; five or more.
*/
SELECT
  l.ip,
  WINDOW(l.event_time, '1 minute').start AS window_start,
  COUNT(*) AS failures
FROM silver.login_attempts AS l
WHERE NOT l.success
GROUP BY l.ip, WINDOW(l.event_time, '1 minute')
HAVING COUNT(*) >= 5
