/* silver
description: The video catalogue as it is now; titles that were taken down are gone.
owner: video
tags: [video]
*/
SELECT
  s.title_id,
  s.name,
  s.kind,
  s.genre,
  s.duration_seconds,
  s.updated_at
FROM bronze.titles AS s
