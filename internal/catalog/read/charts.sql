-- ?1 region, ?2 limit: newest first, incomplete ones included
SELECT id, region, run, started_at, fetched_at, completed_at, pages, videos, next_page_token
FROM charts WHERE region = ?1 ORDER BY id DESC LIMIT ?2;
