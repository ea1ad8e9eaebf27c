-- ?1 region, ?2 chart, ?3 limit: complete charts begun before it, newest first
SELECT id, region, run, started_at, fetched_at, completed_at, pages, videos, next_page_token
FROM charts WHERE region = ?1 AND id < ?2 AND completed_at IS NOT NULL
ORDER BY id DESC LIMIT ?3;
