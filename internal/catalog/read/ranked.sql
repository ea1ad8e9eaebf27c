-- ?1 chart, ?2 limit
SELECT e.rank,
       v.video_id, v.title, v.channel_id, v.channel_title, v.category, v.views, v.likes, v.comments,
       v.published_at, v.first_seen_at, v.fetched_at, v.duration, v.tags, v.description
FROM chart_entries AS e JOIN videos AS v ON v.id = e.video
WHERE e.chart = ?1 ORDER BY e.rank LIMIT ?2;
