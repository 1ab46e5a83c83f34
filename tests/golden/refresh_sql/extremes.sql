-- gold.extremes: incremental: bronze.orders@0→@1; aggregate state

-- what changed in bronze.orders after version 0, up to 1
CREATE OR REPLACE TEMPORARY VIEW __refresh_bronze_orders_change AS
SELECT *, IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS __w
FROM TABLE_CHANGES_BY_PATH('PROJECT/data/orders', 1, 1);

-- what changed below the next operator, without what cancels out
CREATE OR REPLACE TEMPORARY VIEW __refresh_change_1 AS
SELECT
  amount,
  __sum AS __w
FROM (
  SELECT
    amount,
    SUM(__w) AS __sum
  FROM (
    SELECT
      amount AS amount,
      __w
    FROM __refresh_bronze_orders_change
  ) AS t
  GROUP BY
    amount
) AS t
WHERE
  __sum <> 0;

-- the aggregate state state.0 before, from nothing
CREATE OR REPLACE TEMPORARY VIEW __refresh_state_0_old AS
SELECT
  COUNT(*) AS n,
  COUNT(amount) AS nn0,
  MIN(amount) AS min0,
  MAX(amount) AS max0
FROM (
  SELECT
    amount AS amount
  FROM delta.`PROJECT/data/orders` VERSION AS OF 0
) AS t;

-- the groups that the change touches
CREATE OR REPLACE TEMPORARY VIEW __refresh_groups_3 AS
SELECT
  CAST(SUM(__sign) AS BIGINT) AS n,
  CAST(SUM(IF((
    amount
  ) IS NULL, 0, __sign)) AS BIGINT) AS nn0,
  MIN(IF(__sign > 0, (
    amount
  ), NULL)) AS min0_in,
  MAX(IF(__sign > 0, (
    amount
  ), NULL)) AS max0_in,
  MIN(IF(__sign < 0, (
    amount
  ), NULL)) AS min0_out,
  MAX(IF(__sign < 0, (
    amount
  ), NULL)) AS max0_out
FROM (
  SELECT
    *,
    IF(__w > 0, 1, -1) AS __sign,
    EXPLODE(SEQUENCE(1, CAST(ABS(__w) AS INT))) AS __copy
  FROM (
    SELECT
      amount,
      __w
    FROM __refresh_change_1
  ) AS t
) AS t;

-- counts, sums and extremes, as far as the stored ones and the change show them
CREATE OR REPLACE TEMPORARY VIEW __refresh_compared_4 AS
SELECT
  s.n AS n,
  s.nn0 AS nn0,
  IF(s.nn0 <> 0, IF(o.min0 IS NULL OR c.min0_in <= o.min0, c.min0_in, o.min0), NULL) AS min0,
  COALESCE(
    s.nn0 <> 0 AND c.min0_out <= o.min0 AND NOT COALESCE(c.min0_in <= o.min0, FALSE),
    FALSE
  ) AS min0_gone,
  IF(s.nn0 <> 0, IF(o.max0 IS NULL OR c.max0_in >= o.max0, c.max0_in, o.max0), NULL) AS max0,
  COALESCE(
    s.nn0 <> 0 AND c.max0_out >= o.max0 AND NOT COALESCE(c.max0_in >= o.max0, FALSE),
    FALSE
  ) AS max0_gone
FROM (
  SELECT
    n_new AS n,
    nn0_new AS nn0
  FROM (
    SELECT
      SUM(n) AS n_new,
      SUM(nn0) AS nn0_new
    FROM (
      SELECT
        n,
        nn0
      FROM __refresh_state_0_old
      UNION ALL
      SELECT
        n,
        nn0
      FROM __refresh_groups_3
    ) AS t
  ) AS t
) AS s
CROSS JOIN __refresh_state_0_old AS o
CROSS JOIN __refresh_groups_3 AS c;

-- a row if a stored extreme may have been deleted
CREATE OR REPLACE TEMPORARY VIEW __refresh_deleted_extremes_5 AS
SELECT
  1 AS __one
FROM __refresh_compared_4
WHERE
  min0_gone OR max0_gone;

-- the same; an extreme that may have been deleted is found among all rows
CREATE OR REPLACE TEMPORARY VIEW __refresh_extremes_6 AS
SELECT
  c.n AS n,
  c.nn0 AS nn0,
  IF(c.min0_gone, f.min0, c.min0) AS min0,
  IF(c.max0_gone, f.max0, c.max0) AS max0
FROM __refresh_compared_4 AS c
CROSS JOIN (
  SELECT
    MIN(amount) AS min0,
    MAX(amount) AS max0
  FROM (
    SELECT
      t.amount
    FROM (
      SELECT
        amount AS amount
      FROM delta.`PROJECT/data/orders` VERSION AS OF 1
    ) AS t
    CROSS JOIN __refresh_deleted_extremes_5 AS k
  ) AS t
) AS f;

-- state.0 after; a refresh writes them to a version of their own
CREATE OR REPLACE TEMPORARY VIEW __refresh_state_0_new AS
SELECT
  n,
  nn0,
  min0,
  max0
FROM __refresh_extremes_6;

-- what changed in the aggregate state state.0
CREATE OR REPLACE TEMPORARY VIEW __refresh_state_0_change AS
SELECT
  n,
  nn0,
  min0,
  max0,
  1 AS __w
FROM (
  SELECT
    n AS n,
    nn0 AS nn0,
    min0 AS min0,
    max0 AS max0
  FROM __refresh_state_0_new
) AS t
UNION ALL
SELECT
  n,
  nn0,
  min0,
  max0,
  -1 AS __w
FROM (
  SELECT
    n AS n,
    nn0 AS nn0,
    min0 AS min0,
    max0 AS max0
  FROM __refresh_state_0_old
) AS t;

-- the rows to delete (-) from and insert (+) into gold.extremes@0
CREATE OR REPLACE TEMPORARY VIEW __refresh_result AS
SELECT
  orders,
  least,
  most,
  __sum AS __w
FROM (
  SELECT
    orders,
    least,
    most,
    SUM(__w) AS __sum
  FROM (
    SELECT
      orders AS orders,
      least AS least,
      most AS most,
      __w
    FROM (
      SELECT
        count AS orders,
        min AS least,
        max AS most,
        __w
      FROM (
        SELECT
          s0_n AS count,
          IF(s0_nn0 = 0, NULL, s0_min0) AS min,
          IF(s0_nn0 = 0, NULL, s0_max0) AS max,
          __w
        FROM (
          SELECT
            n AS s0_n,
            nn0 AS s0_nn0,
            min0 AS s0_min0,
            max0 AS s0_max0,
            __w
          FROM __refresh_state_0_change
        ) AS t
      ) AS t
    ) AS t
  ) AS t
  GROUP BY
    orders,
    least,
    most
) AS t
WHERE
  __sum <> 0;

SELECT * FROM __refresh_result;

-- publish: one commit, shown as comments because this script writes no table
-- delete and insert: all copies of a row are deleted, the remaining inserted
-- MERGE INTO delta.`PROJECT/state/lake/gold/extremes` AS t
-- USING (
--   SELECT `orders`, `least`, `most`, TRUE AS __leaves
--   FROM __refresh_result
--   WHERE __w < 0
--   UNION ALL
--   SELECT `orders`, `least`, `most`, FALSE AS __leaves
--   FROM (
--     SELECT `orders`, `least`, `most`, __w AS __copies
--     FROM __refresh_result
--     WHERE __w > 0
--     UNION ALL
--     SELECT r.`orders`, r.`least`, r.`most`, COUNT(*) + r.__w AS __copies
--     FROM __refresh_result AS r
--     JOIN delta.`PROJECT/state/lake/gold/extremes` VERSION AS OF 0 AS p
--       ON p.`orders` <=> r.`orders` AND p.`least` <=> r.`least` AND p.`most` <=> r.`most`
--     WHERE r.__w < 0
--     GROUP BY r.`orders`, r.`least`, r.`most`, r.__w
--   ) AS remaining
--   LATERAL VIEW EXPLODE(ARRAY_REPEAT(1, CAST(__copies AS INT))) e AS __copy
-- ) AS s
-- ON s.__leaves
--   AND t.`orders` <=> s.`orders`
--   AND t.`least` <=> s.`least`
--   AND t.`most` <=> s.`most`
-- WHEN MATCHED THEN DELETE
-- WHEN NOT MATCHED AND NOT s.__leaves THEN INSERT (`orders`, `least`, `most`)
--   VALUES (s.`orders`, s.`least`, s.`most`);
