-- ?1 chart, ?2 page token
SELECT next_page_token, completed_at IS NOT NULL, places,
       EXISTS (SELECT 1 FROM chart_pages WHERE chart = charts.id AND token = ?2)
FROM charts WHERE id = ?1;
