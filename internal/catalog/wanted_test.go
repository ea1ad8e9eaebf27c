package catalog

import (
	"testing"
	"time"
)

// TestPagesWanted: the pages a sweep of at most 4 pages will request, depending on the charts
// stored.
func TestPagesWanted(t *testing.T) {
	c := open(t)
	page := func(token, next string, at time.Time, ids ...string) Page {
		return Page{Token: token, Next: next, Videos: videos(ids...), FetchedAt: at}
	}
	wants := func(step string, most, want int64) {
		t.Helper()
		if got, err := c.PagesWanted(t.Context(), "US", most); got != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", step, got, err, want)
		}
	}
	wants("no chart", 4, 4)
	id := begin(t, c, us, page("", "2", nine, "a"))
	wants("half a chart", 4, 4)
	store(t, c, id, page("2", "", nine, "b"))
	must(t, c.Complete(t.Context(), id, nine))
	wants("a chart of 2 pages", 4, 2)
	wants("fewer are configured", 1, 1)
	later := nine.Add(time.Hour)
	id = begin(t, c, us, page("", "2", later, "a"))
	wants("the next one is half there", 4, 2)
	must(t, c.Complete(t.Context(), id, later))
	wants("it was not read to its end", 4, 4)
	if got, err := c.PagesWanted(t.Context(), "GB", 3); got != 3 || err != nil {
		t.Errorf("another region: %d, %v", got, err)
	}
}
