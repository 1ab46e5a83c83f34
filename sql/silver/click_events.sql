/* silver
description: Clicks, one row per event, even if it was sent more than once.
owner: shop
tags: [shop]
*/
SELECT
  s.event_id,
  s.user_id,
  s.page,
  s.element,
  s.event_time
FROM bronze.click_events AS s
