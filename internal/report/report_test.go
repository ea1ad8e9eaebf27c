package report

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/catalog"
	"quotabudget/internal/costs"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
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
	for label, want := range map[string]string{"method": "method", "region": "region", "job": "job",
		"label:team": "team", "label:job": "job"} {
		if got, err := LabelOf(label); got != want || err != nil {
			t.Errorf("%s: %q, %v", label, got, err)
		}
	}
	for _, label := range []string{"", "run", "team", "Method", "label:", "label:a b", "label:Team="} {
		if got, err := LabelOf(label); err == nil || !strings.HasPrefix(err.Error(), label+":") {
			t.Errorf("%q: %q, %v", label, got, err)
		}
	}
}

func TestCompareCharts(t *testing.T) {
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	all := []string{"a", "b", "c", "d"}
	for _, c := range []struct {
		charts []ReadChart
		want   Freshness
	}{
		{[]ReadChart{{at, 9, all},
			{at.Add(time.Hour), 1, []string{"x", "a", "b", "c"}}, // all four changed; x is new
			// two of four changed; y is new
			{at.Add(3 * time.Hour), 2, []string{"x", "a", "", "y", "c", "b"}},
			{at.Add(4 * time.Hour), 2, nil}},
			Freshness{2, 90 * time.Minute, 0.75, 0.25, 3, 2.0 / 3}},
		// reading a chart to another depth does not change it
		{[]ReadChart{{at, 4, all}, {at.Add(time.Hour), 4, all[:1]}, {at.Add(2 * time.Hour), 4, all},
			{at.Add(3 * time.Hour), 4, nil}}, Freshness{2, time.Hour, 0, 0, 8, 0}},
	} {
		if got := CompareCharts(c.charts); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.charts, got, c.want)
		}
	}
}

func window(text, zone string) quota.Window {
	w, err := quota.ParseWindow(text, zone)
	if err != nil {
		panic(err) // fails only on a limit listed below
	}
	return w
}

var windows = []quota.Window{
	window("1h", ""), window("day", "America/Los_Angeles"), window("24h", ""), window("1m", ""),
	window("hour", "Asia/Kolkata"), window("restoring 3/1m", ""), window("anchored 1h", ""),
	window("week", "UTC"),
}

// TestReplayDeniesAsEnforcing: a replay of the log of an observed limit denies the same charges
// as a ledger that enforces the limit.
func TestReplayDeniesAsEnforcing(t *testing.T) {
	t.Parallel()
	l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	var now time.Time
	l.Now = func() time.Time { return now }
	cases := 0
	rapid.Check(t, func(r *rapid.T) {
		cases++
		limit := quota.Limit{Bucket: "default", Observe: true,
			Window: rapid.SampledFrom(windows).Draw(r, "window"),
			Units:  rapid.Int64Range(1, 60).Draw(r, "units")}
		enforced := limit
		enforced.Observe = false
		now = time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
		refused := make(map[time.Time]bool)
		charge := func(credential string, at quota.Limit, c quota.Charge) quota.Decision {
			c.Credential, c.Limits = credential, []quota.Limit{at}
			d, err := l.Charge(r.Context(), c)
			if err != nil && !d.Never {
				r.Fatal(err)
			}
			return d
		}
		watched, real := fmt.Sprintf("watched-%d", cases), fmt.Sprintf("real-%d", cases)
		for range rapid.IntRange(1, 40).Draw(r, "charges") {
			longest := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 9 * time.Hour}).
				Draw(r, "about")
			now = now.Add(time.Duration(rapid.Int64Range(1, int64(longest/time.Millisecond)).
				Draw(r, "ms")) * time.Millisecond)
			c := quota.Charge{ID: quota.NewID(time.Now()), Costs: []quota.Cost{{Bucket: "default",
				Units: rapid.Int64Range(1, 30).Draw(r, "cost")}}}
			d := charge(watched, limit, c)
			if !d.Allowed {
				r.Fatalf("an observed limit denies: %+v", d)
			}
			if !charge(real, enforced, c).Allowed {
				refused[d.At] = true
			}
		}
		replay := NewReplay(limit, time.Time{}, time.Time{}, time.Time{})
		q := quota.Query{Credential: watched, Bucket: "default"}
		for e, err := range quota.All(r.Context(), l, q) {
			if err != nil {
				r.Fatal(err)
			}
			before := replay.Finding().Refused.Charges
			if err := replay.Add(e); err != nil {
				r.Fatal(err)
			}
			if refuses := replay.Finding().Refused.Charges > before; refuses != refused[e.At] {
				r.Fatalf("%d units at %s under %s: refused in the replay %t, by the limit %t",
					e.Units, e.At, limit.Name(), refuses, refused[e.At])
			}
		}
	})
}

func add(t *testing.T, r *Replay, e quota.Entry) {
	t.Helper()
	if err := r.Add(e); err != nil {
		t.Fatal(err)
	}
}

func at(hour, minute int) time.Time { return time.Date(2026, 6, 1, hour, minute, 0, 0, time.UTC) }

// TestFinding: the charges that would have been refused, and when. Units spent elsewhere count
// and cannot be refused.
func TestFinding(t *testing.T) {
	limit := quota.Limit{Bucket: "default", Units: 10, Window: quota.Sliding(time.Hour)}
	r := NewReplay(limit, time.Time{}, at(7, 0), at(9, 0))
	add := func(at time.Time, units int64, labels quota.Labels) {
		add(t, r, quota.Entry{At: at, Units: units, Labels: labels})
	}
	de, us := quota.Labels{"region": "DE", "run": "1"}, quota.Labels{"region": "US"}
	add(at(6, 30), 8, us)
	add(at(7, 10), 3, quota.Labels{"region": "DE", "run": "2", "denied": "default 1h"}) // 8 + 3
	add(at(7, 15), 2, us)
	// 2 + 8: the eight have left, the three were never admitted
	add(at(7, 40), 8, us)
	add(at(7, 50), 5, quota.Labels{"source": "upstream"}) // 15
	add(at(8, 20), 1, de)                                 // 13 + 1
	add(at(8, 30), 4, de)
	add(at(8, 45), 6, us) // 5 + 6
	add(at(9, 0), 2, us)
	add(at(9, 1), 9, us) // too late to count
	f := r.Finding()
	if f.Charged != (Refusals{Units: 31, Charges: 8}) ||
		f.Refused != (Refusals{Units: 14, Charges: 4}) || !f.Exact || !f.From.Equal(at(6, 30)) {
		t.Errorf("%+v", f)
	}
	if len(f.By) != 2 || f.By[0].Units != 8 || f.By[0].Charges != 3 ||
		f.By[0].Labels.Encode() != "region=DE" || f.By[1].Units != 6 {
		t.Errorf("by labels: %+v", f.By)
	}
	if len(f.Hours) != 2 || !time.Time(f.Hours[0].At).Equal(at(7, 0)) || f.Hours[1].Units != 11 {
		t.Errorf("by hour: %+v", f.Hours)
	}
	if f.Common("region") != "" || f.Share() != 14.0/31 {
		t.Errorf("%q, %f", f.Common("region"), f.Share())
	}
	if _, all := f.Hour(); all {
		t.Error("Hour found one hour, want two")
	}
}

// TestSettled: if calls are booked after they have ended, the result is not exact.
func TestSettled(t *testing.T) {
	r := NewReplay(quota.Limit{Units: 1, Window: window("1h", "")}, time.Time{}, at(0, 0),
		time.Time{})
	r.Settled()
	add(t, r, quota.Entry{At: at(1, 0), Units: 2})
	if f := r.Finding(); f.Exact || f.Note == "" || f.Refused.Units != 2 {
		t.Errorf("%+v", f)
	}
}

// TestUnknown: the result is not exact if the log lacks information.
func TestUnknown(t *testing.T) {
	for text, exact := range map[string]bool{"concurrent": false, "anchored 1h": false, "1h": true,
		"day": true, "restoring 1/1s": true} {
		r := NewReplay(quota.Limit{Window: window(text, "")}, time.Time{}, at(0, 0), time.Time{})
		add(t, r, quota.Entry{At: at(1, 0), Units: 1})
		f := r.Finding()
		if f.Exact != exact || (f.Note == "") != exact ||
			(f.Refused.Units > 0) != (text != "concurrent") {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

// TestOutageText: the text says what may be spent, also before the buckets are known.
func TestOutageText(t *testing.T) {
	left := []quota.Cost{{Bucket: "default", Units: 2}}
	for want, o := range map[string]Outage{
		"k may spend 2 of 3 units of default without the ledger": {"k", 3,
			quota.Outage{Left: left}},
		"k may spend 3 units of each bucket without the ledger": {"k", 3, quota.Outage{}},
		"k: 1 call waits in the journal, of 2026-06-01 00:00:00Z": {"k", 0,
			quota.Outage{Waiting: 1, Oldest: at(0, 0)}},
	} {
		if got := o.Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
