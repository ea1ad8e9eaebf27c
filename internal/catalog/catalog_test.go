package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/sqlite"
)

func TestHalfChartsAreInvisible(t *testing.T) {
	c := open(t)
	wantHeads(t, c, us, "none")
	id := begin(t, c, us, Page{Next: "CDIQAA", Videos: videos("a", "b"), FetchedAt: nine})
	wantHeads(t, c, us, "none")
	store(t, c, id, Page{Token: "CDIQAA", Videos: videos("c"), FetchedAt: nine.Add(time.Second)})
	wantHeads(t, c, us, "none")
	must(t, c.Complete(t.Context(), id, nine.Add(2*time.Second)))
	wantHeads(t, c, us, "1:a 2:b 3:c")

	later := begin(t, c, us, Page{Next: "CDIQAA", Videos: videos("x"),
		FetchedAt: nine.Add(3 * time.Hour)})
	wantHeads(t, c, us, "1:a 2:b 3:c")
	wantHeads(t, c, "GB", "none")

	all, err := c.Charts(t.Context(), us, 0)
	must(t, err)
	want := []Chart{
		{ID: later, Region: "US", Run: "run1", StartedAt: nine.Add(3 * time.Hour),
			FetchedAt: nine.Add(3 * time.Hour), Pages: 1, Videos: 1, NextPageToken: "CDIQAA"},
		{ID: id, Region: "US", Run: "run1", StartedAt: nine,
			FetchedAt:   nine.Add(time.Second),
			CompletedAt: nine.Add(2 * time.Second), Pages: 2, Videos: 3},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("charts\n%+v, want\n%+v", all, want)
	}
}

func TestRepeatedIDsKeepTheirFirstRank(t *testing.T) {
	c := open(t)
	id, n, err := c.Begin(t.Context(), us, "run1", noOther,
		Page{Next: "2", Videos: videos("a", "-b", "a"), FetchedAt: nine})
	if n != 2 || err != nil {
		t.Errorf("added %d, want 2, %v", n, err)
	}
	if n := store(t, c, id, Page{Token: "2", Videos: videos("-b", "c"), FetchedAt: nine,
		Last: true}); n != 1 {
		t.Errorf("added %d, want 1", n)
	}
	wantHeads(t, c, us, "1:a 2:-b 5:c")
	for chart, want := range map[ChartID]string{id: `["a" "-b" "" "" "c"]`, id + 1: `[]`} {
		if places, err := c.Places(t.Context(), chart); err != nil ||
			fmt.Sprintf("%q", places) != want {
			t.Errorf("places %q, %v; want %s", places, err, want)
		}
	}
	got, _, err := c.Current(t.Context(), us, 1)
	if err != nil || got.Videos != 3 || got.Pages != 2 || !got.CompletedAt.Equal(nine) {
		t.Errorf("chart %+v, %v", got, err)
	}
}

func TestAPageIsStoredOnce(t *testing.T) {
	c := open(t)
	first := Page{Next: "2", Videos: videos("a"), FetchedAt: nine}
	second := Page{Token: "2", Videos: videos("b"), FetchedAt: nine}
	id := begin(t, c, us, first)
	for _, again := range []Page{first, {Next: "9", Videos: videos("z"), FetchedAt: nine}} {
		if n := store(t, c, id, again); n != 0 {
			t.Errorf("added %d", n)
		}
	}
	store(t, c, id, second)
	store(t, c, id, first)
	must(t, c.Complete(t.Context(), id, nine))
	store(t, c, id, second)
	wantHeads(t, c, us, "1:a 2:b")
	if _, err := c.Video(t.Context(), "z"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a page that was stored before changed something: %v", err)
	}
}

func TestAPageThatIsNotNextIsRefused(t *testing.T) {
	c := open(t)
	if _, _, err := c.Begin(t.Context(), us, "run1", noOther,
		Page{Token: "3", FetchedAt: nine}); err == nil {
		t.Error("the third page was stored first")
	}
	id := begin(t, c, us, Page{Next: "2", Videos: videos("first"), FetchedAt: nine})
	if _, err := c.StorePage(t.Context(), id, Page{Token: "3", FetchedAt: nine}); err == nil {
		t.Error("the third page was stored second")
	}
	chart(t, c, us, nine, videos("a")...)
	if _, err := c.StorePage(t.Context(), id+1, Page{Token: "3", FetchedAt: nine}); err == nil ||
		!strings.Contains(err.Error(), "complete") {
		t.Errorf("a page for a complete chart: %v", err)
	}
	if _, err := c.StorePage(t.Context(), 99, Page{FetchedAt: nine}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a page of no chart: %v", err)
	}
	bad := Page{Token: "2", Next: "3", Videos: videos("ok", ""), FetchedAt: nine}
	if _, err := c.StorePage(t.Context(), id, bad); err == nil {
		t.Error("a video without id was stored")
	}
	bad.Token = ""
	if id, added, err := c.Begin(t.Context(), us, "run1", noOther, bad); err == nil || id != 0 ||
		added != 0 {
		t.Errorf("a video without id was stored: chart %d, %d added", id, added)
	}
	if _, err := c.Video(t.Context(), "ok"); !errors.Is(err, ErrNotFound) {
		t.Errorf("half a page was stored: %v", err)
	}
	// the table also has the charts that Charts does not return
	if n := scalar(t, c, "SELECT count(*) FROM charts"); n != 2 {
		t.Errorf("got %d charts, want 2: a chart was begun without its page", n)
	}
}

func TestComplete(t *testing.T) {
	c := open(t)
	if err := c.Complete(t.Context(), 99, nine); !errors.Is(err, ErrNotFound) {
		t.Errorf("no chart: %v", err)
	}
	id := begin(t, c, us, Page{FetchedAt: nine}) // an empty page counts
	for _, at := range []time.Time{nine.Add(time.Minute), nine.Add(time.Hour)} {
		if err := c.Complete(t.Context(), id, at); err != nil {
			t.Error(err)
		}
	}
	got, _, err := c.Current(t.Context(), us, 0)
	if err != nil || !got.CompletedAt.Equal(nine.Add(time.Minute)) {
		t.Errorf("completed at %v, %v", got.CompletedAt, err)
	}
}

func TestResume(t *testing.T) {
	c := open(t)
	// the next page token of a chart to resume
	want := func(notBefore time.Time, token string, ok bool) {
		t.Helper()
		got, gotOK, err := c.Resume(t.Context(), us, notBefore)
		if err != nil || gotOK != ok || ok && got.NextPageToken != token {
			t.Errorf("%+v, %v, %v; want token %q, %v", got, gotOK, err, token, ok)
		}
	}
	want(time.Time{}, "", false)
	id := begin(t, c, us, Page{Next: "2", Videos: videos("a"), FetchedAt: nine})
	want(nine, "2", true)
	want(nine.Add(time.Microsecond), "", false)
	store(t, c, id, Page{Token: "2", Next: "3", Videos: videos("b"),
		FetchedAt: nine.Add(time.Minute)})
	want(nine, "3", true)
	want(nine.Add(time.Microsecond), "", false) // the first page dates the chart
	store(t, c, id, Page{Token: "3", Videos: videos("c"), FetchedAt: nine.Add(2 * time.Minute)})
	want(nine, "", true) // all pages are stored, Complete is missing

	begin(t, c, "GB", Page{FetchedAt: nine})
	got, _, err := c.Resume(t.Context(), us, nine)
	if err != nil || got.ID != id || got.Pages != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	chart(t, c, us, nine.Add(time.Hour), videos("c")...)
	want(nine, "", false) // a newer chart is complete
}

// TestPassOn: a half chart moves to another run, and only from the run that owns it.
func TestPassOn(t *testing.T) {
	c := open(t)
	id := begin(t, c, us, Page{Next: "2", Videos: videos("a"), FetchedAt: nine})
	other := begin(t, c, us, Page{Next: "2", Videos: videos("a"), FetchedAt: nine})
	pass := func(id ChartID, from, to string, want bool) {
		t.Helper()
		if got, err := c.PassOn(t.Context(), id, from, to); err != nil || got != want {
			t.Errorf("from %s to %s: %v, %v", from, to, got, err)
		}
	}
	want := func(run string) {
		t.Helper()
		charts, err := c.Charts(t.Context(), us, 0)
		if err != nil || len(charts) != 2 || charts[0].ID != other || charts[0].Run != "run1" ||
			charts[1].Run != run {
			t.Errorf("%+v, %v; want %s", charts, err, run)
		}
	}
	pass(id, "run2", "run3", false)
	pass(99, "run1", "run3", false)
	want("run1")
	pass(id, "run1", "run2", true)
	want("run2")
	pass(id, "run1", "run3", false) // asked at the same moment as run2
	want("run2")
	store(t, c, id, Page{Token: "2", Videos: videos("b"), FetchedAt: nine, Last: true})
	pass(id, "run2", "run3", false)
	want("run2")
}

// TestBegunOnce: two processes with the first page of one run's chart begin a single chart. A
// process that passes that chart's ID, because the upstream refused its next page, begins
// another.
func TestBegunOnce(t *testing.T) {
	c := open(t)
	before := begin(t, c, us, Page{Next: "2", Videos: videos("a"), FetchedAt: nine})
	want := func(region string, run string, after, want ChartID, videos int) {
		t.Helper()
		id, added, err := c.Begin(t.Context(), region, run, after, page("b"))
		if err != nil || id != want || added != videos {
			t.Errorf("chart %d with %d, %v; want %d with %d", id, added, err, want, videos)
		}
	}
	want(us, "run1", before, before+1, 1)
	want(us, "run1", before, before+1, 0)
	want(us, "run2", before, before+2, 1)
	want("GB", "run1", before, before+3, 1)
	want(us, "run1", before, before+1, 0)
	want(us, "run1", before+1, before+4, 1)
}

func TestStaleness(t *testing.T) {
	c := open(t)
	au := "AU"
	chart(t, c, us, nine, videos("a")...)
	chart(t, c, us, nine.Add(time.Hour), videos("a")...)
	begin(t, c, us, Page{FetchedAt: nine.Add(2 * time.Hour)})
	mark := func(at time.Time) {
		t.Helper()
		must(t, c.MarkUnavailable(t.Context(), au, at, false))
	}
	want := func(au RegionState) {
		t.Helper()
		got, err := c.Staleness(t.Context(), []string{"GB", "US", "AU"})
		want := []RegionState{{Region: "GB"}, {Region: "US", CompletedAt: nine.Add(time.Hour)}, au}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	mark(nine.Add(time.Hour))
	mark(nine)
	want(RegionState{Region: "AU", UnavailableAt: nine.Add(time.Hour)})
	must(t, c.MarkUnavailable(t.Context(), au, nine.Add(90*time.Minute), true))
	mark(nine.Add(time.Hour))
	want(RegionState{Region: "AU", UnavailableAt: nine.Add(90 * time.Minute), Invalid: true})
	chart(t, c, au, nine.Add(2*time.Hour), videos("a")...)
	want(RegionState{Region: "AU", CompletedAt: nine.Add(2 * time.Hour)})
}

// TestGone: a catalogue that is deleted or replaced while open fails every call, until the file
// is put back.
func TestGone(t *testing.T) {
	c := open(t)
	id := begin(t, c, us, Page{Next: "2", Videos: videos("a"), FetchedAt: nine})
	want := func(gone bool) {
		t.Helper()
		_, err := c.StorePage(t.Context(), id,
			Page{Token: "2", Next: "2", Videos: videos("b"), FetchedAt: nine})
		_, asked := c.Staleness(t.Context(), []string{"US"})
		for _, err := range []error{err, asked} {
			if errors.Is(err, sqlite.ErrGone) != gone || gone &&
				!strings.Contains(err.Error(), c.Path()+": moved, deleted or replaced") {
				t.Errorf("got %v", err)
			}
		}
	}
	kept := c.Path() + ".kept"
	must(t, os.Rename(c.Path(), kept))
	want(true)
	must(t, os.WriteFile(c.Path(), nil, 0o600))
	want(true)
	must(t, os.Rename(kept, c.Path()))
	want(false)
	wantHeads(t, c, us, "none")
}

// TestOpenReading: OpenReading does not create a catalogue, shows what others store, and does not
// write.
func TestOpenReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "catalog.db")
	if _, err := OpenReading(t.Context(), "sqlite://"+path); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("no catalogue: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory was made: %v", err)
	}
	c := openAt(t, path)
	reader, err := OpenReading(t.Context(), "sqlite://"+path)
	must(t, err)
	defer reader.Close()
	chart(t, c, us, nine, videos("a", "b")...)
	wantHeads(t, reader, us, "1:a 2:b")
	err = reader.MarkUnavailable(t.Context(), us, nine, false)
	if !errors.Is(err, sqlite.ErrReadOnly) {
		t.Errorf("written: %v", err)
	}
}
