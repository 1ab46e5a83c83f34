/* gold
description: >
  The ten most watched titles in the latest complete window of content_popularity, per country
  and worldwide. Titles that are no longer in the top ten are removed, and so are the rows of
  earlier windows.
grain: [country, rank]
owner: video
refresh: micro-batch
every: 5 minutes
freshness: 15 minutes
tags: [video]
columns:
  country: ISO 3166 code of two letters, or world.
  rank: Rank from 1, by most views; equal numbers of views are ranked by title_id.
  views: Number of views in the latest complete window of five minutes.
*/
WITH latest AS ( -- a window ends every minute, so one of them ended within the last minute
  SELECT
    p.country,
    p.title_id,
    p.views
  FROM gold.content_popularity AS p
  WHERE p.window_end <= CURRENT_TIMESTAMP()
    AND p.window_end > CURRENT_TIMESTAMP() - INTERVAL 1 MINUTE
),
contenders AS (
  SELECT
    l.country,
    l.title_id,
    l.views
  FROM latest AS l
  WHERE l.country IS NOT NULL
  UNION ALL
  SELECT
    'world' AS country,
    l.title_id,
    SUM(l.views) AS views
  FROM latest AS l
  GROUP BY l.title_id
)
SELECT
  c.country, -- or world
  ROW_NUMBER() OVER (PARTITION BY c.country ORDER BY c.views DESC, c.title_id) AS rank,
  c.title_id,
  c.views
FROM contenders AS c
QUALIFY ROW_NUMBER() OVER (PARTITION BY c.country ORDER BY c.views DESC, c.title_id) <= 10
