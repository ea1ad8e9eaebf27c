package catalog

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"
)

func history(t *testing.T, c *Catalog, id string) History {
	t.Helper()
	h, err := c.Video(t.Context(), id)
	must(t, err)
	return h
}

func TestTextIsKeptByteForByte(t *testing.T) {
	c := open(t)
	strange := Video{
		ID:           "-_strange0A",
		Title:        "e\u0301 is not é \r \u202emirror\u202c 👩‍👩‍👧‍👦 \x00 end\x00",
		ChannelTitle: " spaces ", ChannelID: "UC\"'", Category: "",
		Description: "a\r\nb\u2028c<&>\t\ufeff\U0003134a\ufffd \xff",
		Tags:        []string{"", "x", "x", "", "a,b", `"q"\`, "e\u0301", "\u2028<&>", "\x00"},
	}
	chart(t, c, us, nine, strange, Video{ID: "bare"})
	if got := history(t, c, "bare"); got.Tags == nil || len(got.Tags) != 0 {
		t.Errorf("no tags became %#v", got.Tags)
	}
	want := History{
		Seen:     Seen{Video: strange, FirstSeenAt: nine, FetchedAt: nine},
		Names:    []Names{{nine, strange.Title, strange.ChannelID, strange.ChannelTitle, ""}},
		Counters: []Counters{{At: nine}},
	}
	if got := history(t, c, strange.ID); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%#v, want\n%#v", got, want)
	}
}

func TestHistoryHasChangesOnly(t *testing.T) {
	c := open(t)
	v := video("a")
	at := func(hours int) time.Time { return nine.Add(time.Duration(hours) * time.Hour) }
	see := func(hours int) { chart(t, c, us, at(hours), v) }
	see(0)
	see(1)
	v.Views, v.Comments = number(90), nil // counters fall, comments are turned off
	see(2)
	v.Comments = number(0) // 0 is not the same as missing
	see(3)
	v.Title, v.ChannelID = "Renamed", "UCother"
	see(4)
	v.Description = "only this"
	see(5)
	old := v
	v = video("a") // another process's older response arrives late
	see(2)

	got := history(t, c, "a")
	if !reflect.DeepEqual(got.Video, old) || !got.FirstSeenAt.Equal(at(0)) ||
		!got.FetchedAt.Equal(at(5)) {
		t.Errorf("latest %+v", got.Seen)
	}
	names := []Names{
		{at(0), "Title of a", "UCa", "Channel of a", "10"},
		{at(4), "Renamed", "UCother", "Channel of a", "10"},
	}
	if !reflect.DeepEqual(got.Names, names) {
		t.Errorf("names %+v", got.Names)
	}
	counters := []Counters{
		{at(0), number(100), number(10), number(1)},
		{at(2), number(90), number(10), nil},
		{at(3), number(90), number(10), number(0)},
	}
	if !reflect.DeepEqual(got.Counters, counters) {
		t.Errorf("counters %+v", got.Counters)
	}
}

// TestDamagedTags: a video whose stored tags are damaged can be stored again, and keeps its
// history.
func TestDamagedTags(t *testing.T) {
	c := open(t)
	v := video("a")
	chart(t, c, us, nine, v)
	execute(t, c, "UPDATE videos SET tags = '[oops'")
	chart(t, c, us, nine.Add(time.Hour), v)
	if got := history(t, c, "a"); !reflect.DeepEqual(got.Video, v) || len(got.Names) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestDelete(t *testing.T) {
	c := open(t)
	day := func(n int) time.Time { return nine.AddDate(0, 0, n) }
	chart(t, c, us, day(0), videos("old", "kept", "steady")...)
	many := make([]Video, 449) // more than one step deletes
	for i := range many {
		many[i].ID = fmt.Sprint("old", i)
	}
	chart(t, c, us, day(0), many...)
	kept := video("kept")
	kept.Title, kept.Views = "A new title", number(5)
	chart(t, c, us, day(20), kept, video("steady"))
	begin(t, c, "GB", Page{FetchedAt: day(0)})

	if n, err := c.Delete(t.Context(), day(1)); n != 450 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	if n := scalar(t, c, "SELECT count(*) FROM charts"); n != 1 {
		t.Errorf("%d charts", n)
	}
	if _, err := c.Video(t.Context(), "old"); !errors.Is(err, ErrNotFound) {
		t.Errorf("old: %v", err)
	}
	if n := scalar(t, c, "SELECT count(*) FROM texts"); n != 2 {
		t.Errorf("%d videos in the index", n)
	}
	if got := history(t, c, "kept"); len(got.Names) != 1 || got.Names[0].Title != "A new title" ||
		len(got.Counters) != 1 {
		t.Errorf("kept %+v", got)
	}
	if got := history(t, c, "steady"); len(got.Names) != 1 || len(got.Counters) != 1 {
		t.Errorf("what is still so has gone: %+v", got)
	}
	wantHeads(t, c, us, "1:kept 2:steady")
	for _, region := range []string{us, "GB"} {
		if charts, err := c.Charts(t.Context(), region, 0); err != nil ||
			(region == us) != (len(charts) == 1) {
			t.Errorf("charts of %s: %+v, %v", region, charts, err)
		}
	}
}

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
