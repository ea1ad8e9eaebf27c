-- ?1 match expression, ?2 limit, ?3 how many to skip. A word in the title counts most, in the description least.
SELECT v.id,
       v.video_id, v.title, v.channel_id, v.channel_title, v.category, v.views, v.likes, v.comments,
       v.published_at, v.first_seen_at, v.fetched_at, v.duration, v.tags, v.description
FROM (SELECT rowid, bm25(texts, 10, 5, 3, 1) AS score FROM texts WHERE texts MATCH ?1 ORDER BY score, rowid LIMIT ?2 OFFSET ?3) AS t
JOIN videos AS v ON v.id = t.rowid
ORDER BY t.score, t.rowid;
