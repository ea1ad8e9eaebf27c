-- the runs that are kept, those of a lane together, newest first
SELECT lane, tick, ended_at, outcome, exit_code, units FROM lane_runs
ORDER BY lane, ended_at DESC, tick DESC;
