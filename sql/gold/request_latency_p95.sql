/* gold
description: >
  Requests and exact percentiles of their latency per service and minute; between two values a
  percentile is interpolated.
grain: [service, window_start]
owner: platform
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [platform]
columns:
  window_start: The window is the minute from here on.
  p50_ms: Half of the requests took at most this many milliseconds.
  p95_ms: 95 of 100 requests took at most this many milliseconds.
  p99_ms: 99 of 100 requests took at most this many milliseconds.
*/
SELECT
  r.service,
  WINDOW(r.event_time, '1 minute').start AS window_start,
  COUNT(*) AS requests,
  PERCENTILE(r.latency_ms, 0.5) AS p50_ms,
  PERCENTILE(r.latency_ms, 0.95) AS p95_ms,
  PERCENTILE(r.latency_ms, 0.99) AS p99_ms
FROM silver.request_log AS r
GROUP BY r.service, WINDOW(r.event_time, '1 minute')
