/* gold
description: >
  Views, watch time and viewers per week (its Monday, UTC), title and country; computed on demand.
  Viewers cannot be added up from days: who watched on two days counts once.
partition_by: week
owner: video
refresh: bulk
freshness: 8 days
tags: [video]
columns:
  week: The Monday of the week, in UTC, by the time of the event.
  views: How many events there were.
  watch_seconds: Seconds watched, all events together.
  viewers: How many different users watched in the week.
*/
SELECT
  CAST(DATE_TRUNC('WEEK', v.event_time) AS DATE) AS week,
  v.title_id,
  v.country,
  COUNT(*) AS views,
  SUM(v.watch_seconds) AS watch_seconds,
  COUNT(DISTINCT v.user_id) AS viewers
FROM silver.view_events AS v
GROUP BY ALL
