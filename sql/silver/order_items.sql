/* silver
description: The lines of the shop's orders as they are now.
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
