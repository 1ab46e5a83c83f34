/* silver
description: Cart movements, one row per event.
owner: shop
tags: [shop]
*/
SELECT
  s.event_id,
  s.customer,
  s.item,
  s.action,
  s.quantity,
  s.event_time
FROM bronze.cart_events AS s
