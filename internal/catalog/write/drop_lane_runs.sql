-- ?1 lane, ?2 number of newest runs to keep
DELETE FROM lane_runs WHERE lane = ?1 AND tick NOT IN
    (SELECT tick FROM lane_runs WHERE lane = ?1 ORDER BY ended_at DESC, tick DESC LIMIT ?2);
