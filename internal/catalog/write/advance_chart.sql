-- ?1 chart, ?2 fetched at, ?3 next page token, ?4 places on the page, ?5 videos new in the chart
UPDATE charts SET pages = pages + 1, fetched_at = ?2, next_page_token = ?3, places = places + ?4, videos = videos + ?5
WHERE id = ?1;
