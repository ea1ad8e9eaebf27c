-- ?1 chart, ?2 at. A chart without a page is not complete.
UPDATE charts SET completed_at = coalesce(completed_at, ?2) WHERE id = ?1 AND pages > 0
RETURNING region, category;
