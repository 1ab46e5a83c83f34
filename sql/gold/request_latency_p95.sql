/* gold
description: >
  Number of requests and exact percentiles of their latency per service and minute. A percentile
  between two values is interpolated.
grain: [service, window_start]
owner: platform
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [platform]
columns:
  window_start: Start of the one-minute window.
  p50_ms: 50th percentile (median) of the latency in milliseconds.
  p95_ms: 95th percentile of the latency in milliseconds.
  p99_ms: 99th percentile of the latency in milliseconds.
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
