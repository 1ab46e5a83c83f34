/* silver
description: Sign-in attempts, one row per event.
owner: security
tags: [security]
*/
SELECT
  s.event_id,
  s.user_id,
  s.ip,
  s.success,
  s.event_time
FROM bronze.login_attempts AS s
