-- gold.best: incremental: bronze.orders@0→@1; aggregate state

-- what changed in bronze.orders after version 0, up to 1
CREATE OR REPLACE TEMPORARY VIEW __refresh_bronze_orders_change AS
SELECT *, IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS __w
FROM TABLE_CHANGES_BY_PATH('PROJECT/data/orders', 1, 1);

-- parts of the aggregate state state.0 before
CREATE OR REPLACE TEMPORARY VIEW __refresh_state_0_old AS
SELECT * FROM delta.`PROJECT/state/lake/_state/best/DEFINITION/0` VERSION AS OF 1;

-- the groups that the change touches
CREATE OR REPLACE TEMPORARY VIEW __refresh_groups_2 AS
SELECT
  user_id AS k0,
  CAST(SUM(__sign) AS BIGINT) AS n,
  CAST(SUM(IF((
    amount
  ) IS NULL, 0, __sign)) AS BIGINT) AS nn0,
  SUM(IF(__sign > 0, (
    amount
  ), 0 - (
    amount
  ))) AS sum0
FROM (
  SELECT
    *,
    IF(__w > 0, 1, -1) AS __sign,
    EXPLODE(SEQUENCE(1, CAST(ABS(__w) AS INT))) AS __copy
  FROM (
    SELECT
      user_id AS user_id,
      amount AS amount,
      __w
    FROM __refresh_bronze_orders_change
  ) AS t
) AS t
GROUP BY
  user_id;

-- state.0 after; a refresh writes them to a version of their own
CREATE OR REPLACE TEMPORARY VIEW __refresh_state_0_new AS
SELECT
  k0,
  n_new AS n,
  nn0_new AS nn0,
  sum0_new AS sum0
FROM (
  SELECT
    k0,
    SUM(n) AS n_new,
    SUM(nn0) AS nn0_new,
    SUM(sum0) AS sum0_new
  FROM (
    SELECT
      k0,
      n,
      nn0,
      sum0
    FROM __refresh_state_0_old
    UNION ALL
    SELECT
      k0,
      n,
      nn0,
      sum0
    FROM __refresh_groups_2
  ) AS t
  GROUP BY
    k0
) AS t
WHERE
  n_new <> 0;

-- what changed in the aggregate state state.0
CREATE OR REPLACE TEMPORARY VIEW __refresh_state_0_change AS
SELECT
  k0,
  n,
  nn0,
  sum0,
  1 AS __w
FROM (
  SELECT
    k0,
    n_all AS n,
    nn0_all AS nn0,
    sum0_all AS sum0
  FROM (
    SELECT
      k0,
      CAST(SUM(n) AS BIGINT) AS n_all,
      CAST(SUM(nn0) AS BIGINT) AS nn0_all,
      CAST(SUM(sum0) AS BIGINT) AS sum0_all
    FROM (
      SELECT
        __t.k0,
        __t.n,
        __t.nn0,
        __t.sum0
      FROM (
        SELECT
          k0 AS k0,
          n AS n,
          nn0 AS nn0,
          sum0 AS sum0
        FROM __refresh_state_0_new
      ) AS __t
      LEFT SEMI JOIN __refresh_groups_2 AS __k
        ON __t.k0 IS NOT DISTINCT FROM __k.k0
    ) AS t
    GROUP BY
      k0
  ) AS t
  WHERE
    NOT n_all = 0
) AS t
UNION ALL
SELECT
  k0,
  n,
  nn0,
  sum0,
  -1 AS __w
FROM (
  SELECT
    k0,
    n_all AS n,
    nn0_all AS nn0,
    sum0_all AS sum0
  FROM (
    SELECT
      k0,
      CAST(SUM(n) AS BIGINT) AS n_all,
      CAST(SUM(nn0) AS BIGINT) AS nn0_all,
      CAST(SUM(sum0) AS BIGINT) AS sum0_all
    FROM (
      SELECT
        __t.k0,
        __t.n,
        __t.nn0,
        __t.sum0
      FROM (
        SELECT
          k0 AS k0,
          n AS n,
          nn0 AS nn0,
          sum0 AS sum0
        FROM __refresh_state_0_old
      ) AS __t
      LEFT SEMI JOIN __refresh_groups_2 AS __k
        ON __t.k0 IS NOT DISTINCT FROM __k.k0
    ) AS t
    GROUP BY
      k0
  ) AS t
  WHERE
    NOT n_all = 0
) AS t;

-- what changed below the next operator, without what cancels out
CREATE OR REPLACE TEMPORARY VIEW __refresh_change_5 AS
SELECT
  user_id__3,
  total,
  __sum AS __w
FROM (
  SELECT
    user_id__3,
    total,
    SUM(__w) AS __sum
  FROM (
    SELECT
      user_id__2 AS user_id__3,
      sum AS total,
      __w
    FROM (
      SELECT
        s0_k0 AS user_id__2,
        IF(s0_nn0 = 0, NULL, s0_sum0) AS sum,
        __w
      FROM (
        SELECT
          k0 AS s0_k0,
          n AS s0_n,
          nn0 AS s0_nn0,
          sum0 AS s0_sum0,
          __w
        FROM __refresh_state_0_change
      ) AS t
    ) AS t
  ) AS t
  GROUP BY
    user_id__3,
    total
) AS t
WHERE
  __sum <> 0;

-- the rows to delete (-) from and insert (+) into gold.best@0
CREATE OR REPLACE TEMPORARY VIEW __refresh_result AS
SELECT
  user_id,
  total,
  __sum AS __w
FROM (
  SELECT
    user_id,
    total,
    SUM(__w) AS __sum
  FROM (
    SELECT
      user_id__3 AS user_id,
      total AS total,
      1 AS __w
    FROM (
      SELECT
        user_id__3,
        total
      FROM (
        SELECT
          user_id__2 AS user_id__3,
          sum AS total
        FROM (
          SELECT
            s0_k0 AS user_id__2,
            IF(s0_nn0 = 0, NULL, s0_sum0) AS sum
          FROM (
            SELECT
              s0_k0,
              s0_n_all AS s0_n,
              s0_nn0_all AS s0_nn0,
              s0_sum0_all AS s0_sum0
            FROM (
              SELECT
                s0_k0,
                CAST(SUM(s0_n) AS BIGINT) AS s0_n_all,
                CAST(SUM(s0_nn0) AS BIGINT) AS s0_nn0_all,
                CAST(SUM(s0_sum0) AS BIGINT) AS s0_sum0_all
              FROM (
                SELECT
                  k0 AS s0_k0,
                  n AS s0_n,
                  nn0 AS s0_nn0,
                  sum0 AS s0_sum0
                FROM __refresh_state_0_new
              ) AS t
              GROUP BY
                s0_k0
            ) AS t
            WHERE
              NOT s0_n_all = 0
          ) AS t
        ) AS t
      ) AS t
      ORDER BY
        total DESC,
        user_id__3
      LIMIT 2
    ) AS t
    UNION ALL
    SELECT
      user_id,
      total,
      -1 AS __w
    FROM (
      SELECT
        user_id,
        total
      FROM delta.`PROJECT/state/lake/gold/best` VERSION AS OF 0
    ) AS t
  ) AS t
  GROUP BY
    user_id,
    total
) AS t
WHERE
  __sum <> 0;

SELECT * FROM __refresh_result;

-- publish: one commit, shown as comments because this script writes no table
-- merge by key: a row to delete is found by user_id
-- MERGE INTO delta.`PROJECT/state/lake/gold/best` AS t
-- USING (
--   SELECT `user_id`, `total`, __w < 0 AS __leaves
--   FROM __refresh_result
-- ) AS s
-- ON s.__leaves
--   AND t.`user_id` <=> s.`user_id`
-- WHEN MATCHED THEN DELETE
-- WHEN NOT MATCHED AND NOT s.__leaves THEN INSERT (`user_id`, `total`)
--   VALUES (s.`user_id`, s.`total`);
