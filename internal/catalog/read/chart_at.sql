-- ?1 region, ?2 moment: the last one completed by then
SELECT id, region, run, started_at, fetched_at, completed_at, pages, videos, next_page_token
FROM charts WHERE region = ?1 AND completed_at <= ?2
ORDER BY completed_at DESC, id DESC LIMIT 1;
