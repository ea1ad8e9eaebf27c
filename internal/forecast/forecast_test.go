package forecast

import (
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

func clock(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func window(t testing.TB, text string) quota.Window {
	t.Helper()
	zone := ""
	if text == "day" || text == "hour" {
		zone = "America/Los_Angeles"
	}
	w, err := quota.ParseWindow(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func limit(t testing.TB, units int64, text string) quota.Limit {
	return quota.Limit{Bucket: "default", Units: units, Window: window(t, text)}
}

// lanes are those of the default job, of 4 pages each at one unit.
func lanes(t testing.TB, spec string, regions ...string) []share.Lane {
	t.Helper()
	s, err := schedule.Parse(spec, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	var list []share.Lane
	for _, r := range regions {
		list = append(list, share.Lane{Lane: schedule.Lane{Job: "trending", Region: r, Schedule: s}, Pages: 4})
	}
	return list
}

// spent is one entry of scheduled spending.
func spent(at time.Time, units int64) []quota.Spent {
	return []quota.Spent{{At: at, Units: units, Labels: quota.Labels{quota.LabelJob: "trending"}}}
}

// entries are a page of a region.
func entries(region string, at time.Time) []quota.Spent {
	e := spent(at, 1)
	e[0].Labels[quota.LabelRegion] = region
	return e
}

// times makes the only entry one of so many units.
func times(units int64, e []quota.Spent) []quota.Spent {
	e[0].Units = units
	return e
}

func staggered(lanes []share.Lane, step time.Duration) []share.Lane {
	for i := range lanes {
		lanes[i].Offset = time.Duration(i) * step
	}
	return lanes
}

func floored(lanes []share.Lane, units int64) []share.Lane {
	for i := range lanes {
		lanes[i].Floor = units
	}
	return lanes
}

// lastHour is a curve with all weight on the hour before midnight.
func lastHour() []int64 {
	curve := make([]int64, 24)
	curve[23] = 1
	return curve
}

// flow is unscheduled spending: units every interval, from a moment until another, each a second
// before the interval ends.
func flow(from, to time.Time, every time.Duration, units int64) (entries []quota.Spent) {
	for at := from.Add(every); !at.After(to); at = at.Add(every) {
		entries = append(entries, quota.Spent{At: at.Add(-time.Second), Units: units})
	}
	return entries
}

func join(parts ...[]quota.Spent) []quota.Spent {
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b quota.Spent) int { return a.At.Compare(b.At) })
	return all
}

// Worked examples, on 2026-11-21 (UTC), when the day in Los Angeles ends at 08:00Z. Where nothing
// is unscheduled, the forecast is certain.
func TestOf(t *testing.T) {
	now := clock(t, "2026-11-21 20:00:00")
	morning := clock(t, "2026-11-21 08:30:00")
	day := []quota.Limit{limit(t, 9500, "day")}
	for _, test := range []struct {
		name string
		b    Bucket
		want string
	}{
		{"the runs that find nothing left", Bucket{Limits: day, Spent: spent(morning, 9498), Lanes: lanes(t, "0 22 * * *", "BR", "AU")},
			"default lasts to the reset, and the schedule does not fit in it: 2 of 2 runs are left out by their shares"},
		{"gone with the last page, and missed later", Bucket{Limits: day, Spent: spent(morning, 9496), Lanes: lanes(t, "0 22,23 * * *", "BR")},
			"default lasts to the reset, and the schedule does not fit in it: 1 of 2 runs is left out by its share"},
		{"gone with the last page, and not missed", Bucket{Limits: day, Spent: spent(morning, 9496), Lanes: lanes(t, "0 22 * * *", "BR")},
			"default lasts to the reset"},
		{"several regions", Bucket{Limits: day, Spent: spent(morning, 9476), Lanes: lanes(t, "0 */6 * * *", "US", "GB", "DE", "FR", "IN")},
			"default lasts to the reset, and the schedule does not fit in it: 5 of 10 runs are left out by their shares"},
		{"several times, many regions", Bucket{Limits: day, Spent: spent(morning, 9476), Lanes: lanes(t, "0 */2 * * *", "US", "GB", "DE", "FR", "IN")},
			"default lasts to the reset, and the schedule does not fit in it: 19 of 25 runs are left out by their shares"},
		{"nobody wants anything", Bucket{Limits: day, Spent: spent(morning, 9499), Lanes: lanes(t, "0 8 * * *", "BR")}, "default lasts to the reset"},
		{"nothing left, nobody wants anything", Bucket{Limits: day, Spent: spent(morning, 9500)},
			"default is exhausted (default day America/Los_Angeles) until 2026-11-22 08:00Z"},
		{"another bucket's runs", Bucket{Name: "other", Limits: []quota.Limit{{Bucket: "other", Units: 1, Window: window(t, "day")}},
			Lanes: lanes(t, "0 * * * *", "BR")}, "other lasts to the reset"},
		{"a limit of nothing", Bucket{Limits: []quota.Limit{limit(t, 0, "day")}, Lanes: lanes(t, "0 * * * *", "BR")},
			"default is closed: a limit of it allows no units"},
		{"suspended", Bucket{Limits: day, SuspendedUntil: clock(t, "2026-11-21 22:30:00"), Lanes: lanes(t, "0 22,23 * * *", "BR")},
			"default is suspended until 22:30Z; the 22:00Z run of BR loses 4 of 4 pages"},
		{"suspended, and short afterwards", Bucket{Limits: day, Spent: spent(morning, 9498), SuspendedUntil: clock(t, "2026-11-21 22:30:00"),
			Lanes: lanes(t, "0 22,23 * * *", "BR")},
			"default is suspended until 22:30Z; 2 of 2 runs are left out by their shares"},
		{"a suspension that is over", Bucket{Limits: day, SuspendedUntil: now}, "default lasts to the reset"},
		{"set aside until 21:00", Bucket{Limits: day, Spent: spent(morning, 9000), Lanes: lanes(t, "30 20,22 * * *", "BR"),
			Reservations: []quota.Reservation{{Units: 498, Left: 498, CreatedAt: morning, ExpiresAt: clock(t, "2026-11-21 21:00:00")}}},
			"default lasts to the reset, and the schedule does not fit in it: 1 of 2 runs is left out by its share"},
		{"all set aside until 21:00", Bucket{Limits: day, Spent: spent(morning, 9000),
			Reservations: []quota.Reservation{{Units: 500, Left: 500, CreatedAt: morning, ExpiresAt: clock(t, "2026-11-21 21:00:00")}}},
			"default is exhausted (default day America/Los_Angeles) until 21:00Z"},
		{"set aside, and all drawn by 21:00", Bucket{Limits: day, Lanes: lanes(t, "0 22 * * *", "BR"),
			Spent:        spent(morning, 8999),
			Reservations: []quota.Reservation{{Units: 1000, Drawn: 500, Left: 500, CreatedAt: clock(t, "2026-11-21 19:00:00"), ExpiresAt: clock(t, "2026-11-21 21:00:00")}}},
			"default lasts to the reset, and the schedule does not fit in it: 1 of 1 run is left out by its share"},
		{"set aside, and half drawn by 21:00", Bucket{Limits: day, Lanes: lanes(t, "0 22 * * *", "BR"),
			Spent:        spent(morning, 8999),
			Reservations: []quota.Reservation{{Units: 750, Drawn: 250, Left: 500, CreatedAt: clock(t, "2026-11-21 19:00:00"), ExpiresAt: clock(t, "2026-11-21 21:00:00")}}},
			"default lasts to the reset"},
		{"units that leave a sliding window", Bucket{Limits: []quota.Limit{limit(t, 6, "24h")}, Reset: window(t, "day"),
			Spent: join(spent(clock(t, "2026-11-20 21:00:00"), 4), spent(morning, 2)), Lanes: lanes(t, "0 21,22 * * *", "BR")},
			"default is exhausted (default 24h) until 21:00Z; 1 of 2 runs is left out by its share"},
		{"sliding only, and no reset", Bucket{Limits: []quota.Limit{limit(t, 8, "24h")}, Lanes: lanes(t, "0 21,22,23 * * *", "BR")},
			"default lasts to 2026-11-22 20:00Z, and the schedule does not fit in it: 1 of 3 runs is left out by its share"},
		{"what the runs themselves spend leaves the window too", Bucket{Limits: []quota.Limit{limit(t, 8, "1h")}, Reset: window(t, "day"),
			Lanes: lanes(t, "0,30 * * * *", "BR")}, "default lasts to the reset"},
		{"sliding only, far ahead", Bucket{Limits: []quota.Limit{limit(t, 800, "240h")}, Lanes: lanes(t, "0 21 * * *", "BR")},
			"default lasts to 2026-12-01 20:00Z"},
		{"the tighter of two", Bucket{Limits: append(day, limit(t, 20, "1h")), Spent: spent(morning, 9000), Lanes: lanes(t, "0,20,40 22 * * *", "BR", "AU")},
			"default runs dry 22:40Z, 9 h 20 m before the reset; the 22:40Z run of AU loses 4 of 4 pages"},
		{"a throttle does not make it dry", Bucket{Limits: append(day, limit(t, 2, "1m")), Lanes: lanes(t, "0 22 * * *", "BR", "AU")},
			"default lasts to the reset; the 22:00Z runs of BR and AU lose 6 of 8 pages to the limit default 1m"},
		{"a throttle and time enough", Bucket{Limits: append(day, limit(t, 4, "1m")), Lanes: staggered(lanes(t, "0 22 * * *", "BR", "AU"), time.Minute)},
			"default lasts to the reset"},
		{"held back by a pace, which does not make it dry", Bucket{Limits: day, Spent: spent(morning, 9480), Lanes: lanes(t, "0 * * * *", "BR"),
			Paces: []quota.Limit{{Bucket: "default", Units: 9500, Window: window(t, "day"), Pace: &quota.Pace{}}}},
			"default lasts to the reset; 11 runs of BR from 21:00Z on lose 44 of 44 pages to the pace"},
		{"all of the day in its last hour", Bucket{Limits: day, Lanes: lanes(t, "0 */3 * * *", "BR"),
			Paces: []quota.Limit{{Bucket: "default", Units: 9500, Window: window(t, "day"), Pace: &quota.Pace{Curve: lastHour()}}}},
			"default lasts to the reset; 4 runs of BR from 21:00Z on lose 16 of 16 pages to the pace"},
		{"a floor that a pace does not hold back", Bucket{Limits: day, Lanes: floored(lanes(t, "0 */3 * * *", "BR"), 5),
			Paces: []quota.Limit{{Bucket: "default", Units: 9500, Window: window(t, "day"), Pace: &quota.Pace{Curve: lastHour()}}}},
			"default lasts to the reset; 2 runs of BR from 2026-11-22 03:00Z on lose 8 of 8 pages to the pace"},
		{"of one moment, who was served least lately goes first", Bucket{Limits: []quota.Limit{limit(t, 6, "1h")}, Reset: window(t, "day"),
			Spent: join(entries("BR", clock(t, "2026-11-21 18:00:00")), entries("AU", clock(t, "2026-11-21 17:00:00"))),
			Lanes: lanes(t, "0 22 * * *", "BR", "AU")},
			"default runs dry 22:00Z, 10 h 0 m before the reset; the 22:00Z run of BR loses 2 of 4 pages"},
		{"a chart that was cut off is resumed", Bucket{Limits: []quota.Limit{limit(t, 6, "12m")}, Reset: window(t, "day"), Lanes: lanes(t, "0,13 22 * * *", "BR", "AU")},
			"default runs dry 22:00Z, 10 h 0 m before the reset; the 22:00Z run of AU loses 2 of 4 pages"},
		{"free again after the reset, at a moment that is known", Bucket{Limits: []quota.Limit{limit(t, 6, "24h")}, Reset: window(t, "day"),
			Spent: spent(clock(t, "2026-11-21 17:30:00"), 6)}, "default is exhausted (default 24h) until 2026-11-22 17:30Z"},
		{"the same of two limits", Bucket{Limits: []quota.Limit{limit(t, 6, "24h"), limit(t, 5, "day")}, Reset: window(t, "day"),
			Spent: spent(clock(t, "2026-11-21 17:30:00"), 6), Lanes: lanes(t, "0 22,23 * * *", "BR")},
			"default is exhausted (default day America/Los_Angeles) until 2026-11-22 17:30Z; 2 of 2 runs are left out by their shares"},
		{"spread over the day by the even line", Bucket{Limits: []quota.Limit{limit(t, 24, "day")}, Lanes: lanes(t, "0 * * * *", "US", "GB")},
			"default lasts to the reset, and the schedule does not fit in it: 16 of 22 runs are left out by their shares"},
		{"a day after a run that was a little late", Bucket{Limits: []quota.Limit{limit(t, 4, "24h")}, Reset: window(t, "day"),
			Spent: times(4, entries("BR", clock(t, "2026-11-20 22:00:00").Add(300*time.Millisecond))), Lanes: lanes(t, "0 22 * * *", "BR")},
			"default is exhausted (default 24h) until 22:00Z; the 22:00Z run of BR loses 4 of 4 pages"},
		{"without a share of its own", Bucket{Name: "search_list", Limits: []quota.Limit{{Bucket: "search_list", Units: 6, Window: window(t, "day")}},
			Lanes: lanes(t, "0 22 * * *", "BR", "AU")},
			"search_list runs dry 22:00Z, 10 h 0 m before the reset; the 22:00Z run of AU loses 2 of 4 pages"},
	} {
		test.b.At = now
		test.b.Price = 1
		switch test.b.Name {
		case "":
			test.b.Name = "default"
		case "other":
			test.b.Price = 0
		}
		if got := Of(test.b).Text(); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

// Moments, figures and runs stand in the forecast as they do in its text.
func TestFields(t *testing.T) {
	at := clock(t, "2026-11-21 20:00:00")
	f := Of(Bucket{Name: "default", Price: 1, At: at, Limits: []quota.Limit{limit(t, 10, "5h")}, Reset: window(t, "day"),
		Spent: spent(clock(t, "2026-11-21 18:00:00"), 5), Lanes: lanes(t, "0 21,22,23 * * *", "BR")})
	if f.Verdict != RunsDry || f.Remaining != 5 || f.Chance != 1 || f.Limit != "default 5h" ||
		f.Scheduled != (Work{3, 12, 12}) || f.Lost != (Work{1, 3, 3}) || f.Rate != (Rate{}) {
		t.Errorf("%+v", f)
	}
	for name, got := range map[string][2]time.Time{
		"dry":      {f.DryAt, clock(t, "2026-11-21 22:00:00")},
		"earliest": {f.Earliest, f.DryAt}, "latest": {f.Latest, f.DryAt},
		"opens": {f.OpensAt, clock(t, "2026-11-21 23:00:00")}, // what was spent at 17:00 has left the window
		"reset": {f.ResetAt, clock(t, "2026-11-22 08:00:00")},
	} {
		if !got[0].Equal(got[1]) {
			t.Errorf("%s: %v, want %v", name, got[0], got[1])
		}
	}
	if want := (LostRun{Pages: 4, Lost: 3, Limit: "default 5h"}); len(f.LostRuns) != 1 || f.LostRuns[0].Pages != want.Pages || f.LostRuns[0].Lost != want.Lost ||
		f.LostRuns[0].Limit != want.Limit || f.LeftOut != (Work{}) || f.LostRuns[0].ID() != "trending/BR/2026-11-21T22:00:00Z" {
		t.Errorf("%+v", f.LostRuns)
	}
}
