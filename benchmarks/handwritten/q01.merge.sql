MERGE INTO {target} AS t
USING (
  SELECT
    c.l_returnflag,
    c.l_linestatus,
    SUM(c.w * c.l_quantity) AS qty,
    SUM(c.w * c.l_extendedprice) AS base_price,
    SUM(c.w * (c.l_extendedprice * (1 - c.l_discount))) AS disc_price,
    SUM(c.w * (c.l_extendedprice * (1 - c.l_discount) * (1 + c.l_tax))) AS charge,
    SUM(c.w * c.l_discount) AS disc,
    SUM(c.w) AS n
  FROM (
    SELECT
      l.*,
      IF(l._change_type IN ('insert', 'update_postimage'), 1, -1) AS w
    FROM {lineitem_changes} AS l
    WHERE l.l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
      AND l._change_type IN ('insert', 'delete', 'update_preimage', 'update_postimage')
  ) AS c
  GROUP BY c.l_returnflag, c.l_linestatus
) AS d
ON t.l_returnflag = d.l_returnflag AND t.l_linestatus = d.l_linestatus
WHEN MATCHED AND t.count_order + d.n = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET
  t.sum_qty = t.sum_qty + d.qty,
  t.sum_base_price = t.sum_base_price + d.base_price,
  t.sum_disc_price = t.sum_disc_price + d.disc_price,
  t.sum_charge = t.sum_charge + d.charge,
  t.avg_qty = (t.sum_qty + d.qty) / (t.count_order + d.n),
  t.avg_price = (t.sum_base_price + d.base_price) / (t.count_order + d.n),
  t.avg_disc = (t.sum_disc + d.disc) / (t.count_order + d.n),
  t.count_order = t.count_order + d.n,
  t.sum_disc = t.sum_disc + d.disc
WHEN NOT MATCHED AND d.n > 0 THEN INSERT (
  l_returnflag, l_linestatus, sum_qty, sum_base_price, sum_disc_price, sum_charge,
  avg_qty, avg_price, avg_disc, count_order, sum_disc
) VALUES (
  d.l_returnflag, d.l_linestatus, d.qty, d.base_price, d.disc_price, d.charge,
  d.qty / d.n, d.base_price / d.n, d.disc / d.n, d.n, d.disc
)
