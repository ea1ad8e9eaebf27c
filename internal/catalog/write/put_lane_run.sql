-- ?1 lane, ?2 tick, ?3 when it ended, ?4 outcome, ?5 exit code, ?6 units
INSERT INTO lane_runs (lane, tick, ended_at, outcome, exit_code, units) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO UPDATE SET ended_at = ?3, outcome = ?4, exit_code = ?5, units = ?6;
