/* gold
description: >
  Views, watch time and viewers per day (UTC), title and country. A late event changes the day
  on which it happened.
owner: video
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [video]
columns:
  day: In UTC, by the time of the event.
  views: How many events there were.
  watch_seconds: Seconds watched, all events together.
  viewers: How many different users watched.
*/
SELECT
  CAST(v.event_time AS DATE) AS day,
  v.title_id,
  v.country,
  COUNT(*) AS views,
  SUM(v.watch_seconds) AS watch_seconds,
  COUNT(DISTINCT v.user_id) AS viewers
FROM silver.view_events AS v
GROUP BY ALL
