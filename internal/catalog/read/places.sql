-- ?1 chart
SELECT e.rank, v.video_id FROM chart_entries AS e JOIN videos AS v ON v.id = e.video WHERE e.chart = ?1 ORDER BY e.rank;
