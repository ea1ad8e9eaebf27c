package report

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/costs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// charted returns a chart with a video at each place; "" is the gap that a repeated video leaves.
func charted(ids ...string) (videos []catalog.Ranked) {
	for i, id := range ids {
		if id != "" {
			videos = append(videos, catalog.Ranked{Rank: i + 1,
				Seen: catalog.Seen{Video: catalog.Video{ID: id, Title: "T" + id}}})
		}
	}
	return videos
}

func TestNewChanges(t *testing.T) {
	none := []string(nil)
	for _, c := range []struct {
		name                    string
		before, after           []string
		entered, dropped, moved []string // "id place", and "id was>is"
	}{
		{"the same", []string{"a", "b"}, []string{"a", "b"}, none, none, none},
		{"swapped", []string{"a", "b"}, []string{"b", "a"}, none, none, []string{"b 2>1", "a 1>2"}},
		{"one new on top", []string{"a", "b"}, []string{"c", "a"}, []string{"c 1"},
			[]string{"b 2"}, []string{"a 1>2"}},
		{"a gap moves nobody", []string{"a", "b", "c"}, []string{"a", "", "c"}, none,
			[]string{"b 2"}, none},
		{"a gap that closes", []string{"a", "", "c"}, []string{"a", "c"}, none, none,
			[]string{"c 3>2"}},
		{"from an empty chart", none, []string{"a"}, []string{"a 1"}, none, none},
		{"to an empty chart", []string{"a"}, none, none, []string{"a 1"}, none},
	} {
		got := NewChanges(catalog.Chart{}, charted(c.before...), catalog.Chart{},
			charted(c.after...))
		var moved []string
		for _, m := range got.Moved {
			moved = append(moved, fmt.Sprintf("%s %d>%d", m.ID, m.Was, m.Rank))
		}
		entered, dropped := places(got.Entered), places(got.Left)
		if !slices.Equal(entered, c.entered) || !slices.Equal(dropped, c.dropped) ||
			!slices.Equal(moved, c.moved) {
			t.Errorf("%s: entered %v, left %v, moved %v", c.name, entered, dropped, moved)
		}
		if got.Entered == nil || got.Left == nil || got.Moved == nil {
			t.Errorf("%s: an empty list is written as null", c.name)
		}
	}
}

func places(videos []Video) (all []string) {
	for _, v := range videos {
		all = append(all, fmt.Sprint(v.ID, " ", v.Rank))
	}
	return all
}

// TestGrouper: each bucket has its own sums. The largest comes first; equal sums are in the order
// of their keys.
func TestGrouper(t *testing.T) {
	sums, units := Grouper{}, costs.Unit{Name: "units", Scale: 1}
	for _, charge := range []struct {
		key   string
		units int64
	}{{"US", 4}, {"BR", 1}, {"", 4}, {"BR", 2}, {"GB", 9}} {
		sums.Add(charge.key, "default", units, charge.units, 1)
	}
	want := []Group{{"GB", 9, 1, "default", units}, {"", 4, 1, "default", units},
		{"US", 4, 1, "default", units}, {"BR", 3, 2, "default", units}}
	if got := sums.Groups("region"); got.By != "region" || !reflect.DeepEqual(got.Rows, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	sums.Add("GB", "search_list", units, 5, 1)
	sums.Add("BR", "search_list", units, 6, 1)
	totals := []Group{{"total", 20, 5, "default", units}, {"total", 11, 2, "search_list", units}}
	if got := sums.Groups("region"); got.Rows[4].Key != "BR" || got.Rows[4].Units != 6 ||
		!reflect.DeepEqual(got.Totals(), totals) {
		t.Errorf("%+v, totals %+v", got, got.Totals())
	}
	if got := (Grouper{}).Groups("job"); got.Rows == nil {
		t.Error("an empty list of rows is written as null")
	}
}

func TestLabelOf(t *testing.T) {
	for by, want := range map[string]string{"method": "method", "region": "region", "job": "job",
		"label:team": "team", "label:job": "job"} {
		if got, err := LabelOf(by); got != want || err != nil {
			t.Errorf("%s: %q, %v", by, got, err)
		}
	}
	for _, by := range []string{"", "run", "team", "Method", "label:", "label:a b", "label:Team="} {
		if got, err := LabelOf(by); err == nil || !strings.HasPrefix(err.Error(), by+":") {
			t.Errorf("%q: %q, %v", by, got, err)
		}
	}
}

func TestCompareCharts(t *testing.T) {
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	got := CompareCharts([]ReadChart{
		{at, 9, []string{"a", "b", "c", "d"}},
		// all four moved, one new
		{at.Add(time.Hour), 1, []string{"x", "a", "b", "c"}},
		// two of four moved, one new
		{at.Add(3 * time.Hour), 2, []string{"x", "a", "", "y", "c", "b"}},
		{at.Add(4 * time.Hour), 2, nil},
	})
	if got.Pairs != 2 || got.Gap != 90*time.Minute || got.Moved != 0.75 || got.New != 0.25 ||
		got.Units != 3 || got.PerUnit != 2.0/3 {
		t.Errorf("%+v", got)
	}
}

// TestCompareCharts_Depth: a chart that is read to another depth has not changed.
func TestCompareCharts_Depth(t *testing.T) {
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	all := []string{"a", "b", "c", "d"}
	got := CompareCharts([]ReadChart{{at, 4, all}, {at.Add(time.Hour), 4, all[:1]},
		{at.Add(2 * time.Hour), 4, all}, {at.Add(3 * time.Hour), 4, nil}})
	if got.Pairs != 2 || got.Moved != 0 || got.New != 0 || got.Units != 8 {
		t.Errorf("%+v", got)
	}
}
