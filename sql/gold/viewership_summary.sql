/* gold
description: >
  Watch time per user and title of the current catalogue. Late events count as soon as they
  arrive. When a title is taken down, all of its rows are removed.
owner: video
refresh: micro-batch
every: 10 minutes
freshness: 30 minutes
tags: [video]
columns:
  watch_seconds: Total seconds watched.
  first_seen_at: Time of the earliest event, even if it arrived late.
  last_seen_at: Time of the latest event.
sinks:
  - kafka: {topic: gold.viewership_summary, format: upsert}
  - postgres: {table: serving.viewership_summary}
*/
SELECT
  v.user_id,
  v.title_id,
  SUM(v.watch_seconds) AS watch_seconds,
  MIN(v.event_time) AS first_seen_at, -- earliest event, whenever it arrived
  MAX(v.event_time) AS last_seen_at
FROM silver.view_events AS v
JOIN silver.titles AS t ON t.title_id = v.title_id
GROUP BY ALL
