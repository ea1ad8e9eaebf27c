-- all stored runs, grouped by lane, newest first
SELECT lane, tick, ended_at, outcome, exit_code, units FROM lane_runs
ORDER BY lane, ended_at DESC, tick DESC;
