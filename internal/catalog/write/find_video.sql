-- ?1 video id
SELECT v.id,
       v.video_id, v.title, v.channel_id, v.channel_title, v.category, v.views, v.likes, v.comments,
       v.published_at, v.first_seen_at, v.fetched_at, v.duration, v.tags, v.description
FROM videos AS v WHERE v.video_id = ?1;
