/* silver
description: Order lines of the shop in their current state.
owner: shop
tags: [shop]
*/
SELECT
  s.order_id,
  s.line,
  s.product_id,
  s.quantity,
  s.unit_price
FROM bronze.order_items AS s
