-- ?1 JSON array of video row IDs, in the order wanted
SELECT v.id,
       v.video_id, v.title, v.channel_id, v.channel_title, v.category, v.views, v.likes, v.comments,
       v.published_at, v.first_seen_at, v.fetched_at, v.duration, v.tags, v.description
FROM json_each(?1) AS wanted JOIN videos AS v ON v.id = wanted.value
ORDER BY wanted.key;
