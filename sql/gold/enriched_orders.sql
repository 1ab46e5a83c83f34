/* gold
description: >
  Every order with the tier and country of its user and the category of its product, all with
  their current values. The product of an order is the product of its first line. An order
  appears once its user and its product have arrived.
grain: [order_id]
owner: analytics
refresh: continuous
freshness: 1 minute
tags: [shop]
*/
SELECT
  o.order_id,
  o.amount,
  u.tier AS user_tier,
  u.country,
  p.category AS product_category,
  o.created_at AS order_time
FROM silver.orders AS o
JOIN silver.users AS u ON u.user_id = o.user_id
JOIN silver.products AS p ON p.product_id = o.product_id
