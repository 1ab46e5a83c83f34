MERGE INTO {target} AS t
USING (
  SELECT
    SUM(c.w * (c.l_extendedprice * c.l_discount)) AS revenue,
    SUM(c.w) AS n
  FROM (
    SELECT
      l.*,
      IF(l._change_type IN ('insert', 'update_postimage'), 1, -1) AS w
    FROM {lineitem_changes} AS l
    WHERE l.l_shipdate >= DATE '1994-01-01'
      AND l.l_shipdate < DATE '1995-01-01'
      AND l.l_discount BETWEEN 0.05 AND 0.07
      AND l.l_quantity < 24
  ) AS c
) AS d
ON TRUE
WHEN MATCHED AND d.n IS NOT NULL THEN UPDATE SET
  t.revenue = IF(t.n + d.n = 0, NULL, COALESCE(t.revenue, 0) + d.revenue),
  t.n = t.n + d.n
