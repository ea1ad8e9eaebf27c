-- ?1 match expression, ?2 how many of the newest matching videos to rank, ?3 limit: row IDs of
-- videos. Videos that match in the title alone come first, then those that also need tags and the
-- channel's title. The index is read from the newest video back, as far as needed; bm25 would read
-- every match of every word.
WITH newest AS MATERIALIZED (SELECT rowid AS id FROM texts WHERE texts MATCH ?1 ORDER BY rowid DESC LIMIT ?2),
     since AS MATERIALIZED (SELECT min(id) AS id FROM newest),
     titles AS MATERIALIZED (SELECT rowid AS id FROM texts
         WHERE texts MATCH '{title} : (' || ?1 || ')' AND rowid >= (SELECT id FROM since)
         ORDER BY rowid DESC LIMIT ?3),
     heads AS MATERIALIZED (SELECT rowid AS id FROM texts
         WHERE texts MATCH '{title channel_title tags} : (' || ?1 || ')' AND rowid >= (SELECT id FROM since)
         ORDER BY rowid DESC LIMIT ?3)
SELECT id FROM (SELECT id, 1 AS place FROM titles
                UNION ALL SELECT id, 2 FROM heads
                UNION ALL SELECT id, 3 FROM newest)
GROUP BY id ORDER BY min(place), id DESC LIMIT ?3;
