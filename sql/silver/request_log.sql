/* silver
description: Requests answered by the services, one row per event.
owner: platform
tags: [platform]
cluster_by: [service, event_time]
*/
SELECT
  s.event_id,
  s.service,
  s.path,
  s.status,
  s.latency_ms,
  s.event_time
FROM bronze.request_log AS s
