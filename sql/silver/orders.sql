/* silver
description: Orders of the shop in their current state; deleted orders are removed.
owner: shop
tags: [shop]
on_failure: warn
*/
SELECT
  s.order_id,
  s.user_id,
  s.product_id,
  s.status,
  s.amount,
  s.created_at,
  s.updated_at
FROM bronze.orders AS s
