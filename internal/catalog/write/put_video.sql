INSERT INTO videos (video_id, fetched_at, first_seen_at, title, channel_id, channel_title, category,
                    views, likes, comments, published_at, duration, tags, description)
VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (video_id) DO UPDATE SET fetched_at = ?2, title = ?3, channel_id = ?4, channel_title = ?5,
    category = ?6, views = ?7, likes = ?8, comments = ?9, published_at = ?10, duration = ?11, tags = ?12,
    description = ?13
RETURNING id;
