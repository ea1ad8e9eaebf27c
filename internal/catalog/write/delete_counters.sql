-- ?1 before. The newest row of a video is its current state and stays, however old.
DELETE FROM video_counters
WHERE at < ?1 AND EXISTS (SELECT 1 FROM video_counters AS newer WHERE newer.video = video_counters.video AND newer.at > video_counters.at);
