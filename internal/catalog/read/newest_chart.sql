-- ?1 region, ?2 category: the one begun last, complete or not
SELECT id, region, category, run, started_at, fetched_at, completed_at, pages, videos, next_page_token
FROM charts WHERE region = ?1 AND category = ?2 ORDER BY id DESC LIMIT 1;
