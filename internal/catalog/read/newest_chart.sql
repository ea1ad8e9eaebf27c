-- ?1 region: the one begun last, complete or not
SELECT id, region, run, started_at, fetched_at, completed_at, pages, videos, next_page_token
FROM charts WHERE region = ?1 ORDER BY id DESC LIMIT 1;
