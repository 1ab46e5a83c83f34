/* silver
description: Stock levels, one row per event.
owner: warehouse
tags: [shop]
*/
SELECT
  s.event_id,
  s.product_id,
  s.stock_remaining,
  s.event_time
FROM bronze.inventory_updates AS s
