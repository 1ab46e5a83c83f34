-- gold.new: full: first build

-- the view, with its tables at their versions
CREATE OR REPLACE TEMPORARY VIEW __refresh_result AS
SELECT u.segment FROM delta.`PROJECT/data/users` VERSION AS OF 0 AS u;

SELECT * FROM __refresh_result;

-- publish: one commit, shown as comments because this script writes no table
-- overwrite: the table is new, or has other columns or partitions
-- CREATE OR REPLACE TABLE delta.`PROJECT/state/lake/gold/new`
-- USING DELTA
-- AS SELECT * FROM __refresh_result;
