INSERT INTO videos (video_id, fetched_at, first_seen_at, title, channel_id, channel_title, category,
                    views, likes, comments, published_at, duration, tags, description)
VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13);
