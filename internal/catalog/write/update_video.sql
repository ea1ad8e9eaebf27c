UPDATE videos SET fetched_at = ?2, title = ?3, channel_id = ?4, channel_title = ?5, category = ?6,
                  views = ?7, likes = ?8, comments = ?9, published_at = ?10, duration = ?11, tags = ?12, description = ?13
WHERE video_id = ?1;
