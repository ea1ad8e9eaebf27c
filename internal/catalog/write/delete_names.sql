-- ?1 before. The newest row of a video is its current state and stays, however old.
DELETE FROM video_names
WHERE at < ?1 AND EXISTS (SELECT 1 FROM video_names AS newer WHERE newer.video = video_names.video AND newer.at > video_names.at);
