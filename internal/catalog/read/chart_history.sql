-- ?1 region, ?2 category, ?3 chart, ?4 limit: complete charts begun before it, newest first
SELECT id, region, category, run, started_at, fetched_at, completed_at, pages, videos, next_page_token
FROM charts WHERE region = ?1 AND category = ?2 AND id < ?3 AND completed_at IS NOT NULL
ORDER BY id DESC LIMIT ?4;
