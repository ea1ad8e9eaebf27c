-- ?1 chart, ?2 at.
UPDATE charts SET completed_at = coalesce(completed_at, ?2) WHERE id = ?1
RETURNING region;
