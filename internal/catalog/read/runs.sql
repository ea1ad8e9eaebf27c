-- ?1 moment, ?2 limit: runs with charts begun before it, newest first
SELECT run, min(started_at), max(coalesce(completed_at, fetched_at)), count(*), count(completed_at), sum(pages), sum(videos)
FROM (SELECT * FROM charts WHERE started_at < ?1 ORDER BY started_at DESC LIMIT 100 * ?2)
GROUP BY run ORDER BY min(started_at) DESC LIMIT ?2;
