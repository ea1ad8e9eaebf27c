package plan

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

func window(t testing.TB, text string) quota.Window {
	t.Helper()
	zone := ""
	if text == "day" || text == "hour" {
		zone = "America/Los_Angeles"
	}
	w, err := quota.ParseWindow(text, zone)
	must(t, err)
	return w
}

func limit(t testing.TB, units int64, text string) quota.Limit {
	return quota.Limit{Bucket: "default", Units: units, Window: window(t, text)}
}

// lanesOf returns lanes of the default job, of 4 pages each at one unit, without a weight.
func lanesOf(t testing.TB, spec string, regions ...string) []share.Lane {
	t.Helper()
	list := lanes(t, spec, 4, 0, regions...)
	for i := range list {
		list[i].Weight = 0
	}
	return list
}

// spent returns an entry of scheduled spending.
func spent(at time.Time, units int64) []quota.Spent {
	return []quota.Spent{{At: at, Units: units, Labels: quota.Labels{quota.LabelJob: "trending"}}}
}

// entries returns the entries of a region's pages.
func entries(region string, at time.Time) []quota.Spent {
	e := spent(at, 1)
	e[0].Labels[quota.LabelRegion] = region
	return e
}

func staggered(lanes []share.Lane, step time.Duration) []share.Lane {
	for i := range lanes {
		lanes[i].Offset = time.Duration(i) * step
	}
	return lanes
}

// bucket returns a bucket at a moment, with limits ("9500 day, 20 1h") and the lanes of a
// schedule and its regions ("0 22 * * * BR AU").
func bucketAt(t testing.TB, at, limits, schedule string, spent ...[]quota.Spent) Bucket {
	b := Bucket{Standing: Standing{Name: "default", Spent: join(spent...)}, Price: 1,
		At: clock(t, at), Reset: window(t, "day")}
	for _, text := range strings.Split(limits, ", ") {
		units, text, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(units, 10, 64)
		must(t, err)
		b.Limits = append(b.Limits, limit(t, n, text))
	}
	if words := strings.Fields(schedule); len(words) > 0 {
		n := slices.IndexFunc(words, func(w string) bool { return len(w) == 2 && w >= "AA" })
		b.Lanes = lanesOf(t, strings.Join(words[:n], " "), words[n:]...)
	}
	return b
}

// lastHour returns a curve with all weight on the hour before midnight.
func lastHour() []int64 {
	curve := make([]int64, 24)
	curve[23] = 1
	return curve
}

// flow returns unscheduled spending: units once per interval between two moments, each a second
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

// TestOf checks worked examples at 20:00Z, when the day in Los Angeles ends at 08:00Z. Without
// unscheduled spending, the forecast is certain.
func TestOf(t *testing.T) {
	on := func(clockTime string) time.Time { return clock(t, "2026-11-21 "+clockTime+":00") }
	other := func(name string, price int64) func(*Bucket) {
		return func(b *Bucket) { *b = unshared(*b, name); b.Price = price }
	}
	aside := func(units int64) func(*Bucket) {
		return func(b *Bucket) { b.reserve(units, time.Hour) }
	}
	pace := func(floor int64, curve []int64) func(*Bucket) {
		return func(b *Bucket) {
			b.Lanes[0].Floor = floor
			b.Paces = []quota.Limit{b.Limits[0]}
			b.Paces[0].Pace = &quota.Pace{Curve: curve}
		}
	}
	took := func(held, units int64) func(*Bucket) {
		return func(b *Bucket) {
			l := &b.Lanes[0]
			l.Pages, l.Price = 1, []quota.Cost{{Bucket: b.Name, Units: held}}
			l.LearnedCosts, l.Runs = []quota.Cost{{Bucket: b.Name, Units: 10 * units}}, 10
		}
	}
	suspended := func(until string) func(*Bucket) {
		return func(b *Bucket) { b.SuspendedUntil = on(until) }
	}
	before := func(spent ...[]quota.Spent) func(*Bucket) {
		return func(b *Bucket) { b.Spent = join(spent...) }
	}
	noReset := func(b *Bucket) { b.Reset = quota.Window{} }
	const (
		lasts   = "default lasts to the reset"
		unused  = "default is unused: nothing is spent or scheduled that a forecast could count"
		short   = lasts + ", but the schedule does not fit: "
		before8 = ", before the reset at 2026-11-22 08:00Z: "
		allDay  = "default is exhausted (default day America/Los_Angeles) until "
	)
	for _, test := range []struct {
		name, limits string
		spent        int64 // at 08:30
		lanes        string
		more         func(*Bucket)
		want         string
	}{
		{"the runs that find nothing left", "9500 day", 9498, "0 22 * * * BR AU", nil,
			short + "BR and AU will miss 2 of 2 runs; to avoid it, set pages to 1"},
		{"gone with the last page, and missed later", "9500 day", 9496, "0 22,23 * * * BR", nil,
			short + "BR will miss 1 run at 23:00Z; to avoid it, set pages to 2"},
		{"gone with the last page, and not missed", "9500 day", 9496, "0 22 * * * BR", nil, lasts},
		{"several regions", "9500 day", 9476, "0 */6 * * * US GB DE FR IN", nil,
			short + "US, GB and 3 more will miss 5 of 10 runs; to avoid it, set pages to 2"},
		{"several times, many regions, and no fewer pages that help", "9500 day", 9476,
			"0 */2 * * * US GB DE FR IN", nil, short +
				"US, GB and 3 more will miss 19 of 25 runs; " +
				"to avoid it, " + changeSchedule},
		{"nobody wants anything", "9500 day", 9499, "0 8 * * * BR", nil, lasts},
		{"nothing left, nobody wants anything", "9500 day", 9500, "", nil, allDay +
			"2026-11-22 08:00Z"},
		{"another bucket's runs", "1 day", 0, "0 * * * * BR", other("other", 0),
			"other is unused: nothing is spent or scheduled that a forecast could count"},
		{"a limit of nothing", "0 day", 0, "0 * * * * BR", nil,
			"default is closed: one of its limits allows no units"},
		{"suspended", "9500 day", 0, "0 22,23 * * * BR", suspended("22:30"),
			"default is suspended until 22:30Z: BR will miss 1 run at 22:00Z"},
		{"suspended, and short afterwards", "9500 day", 9498, "0 22,23 * * * BR",
			suspended("22:30"),
			"default is suspended until 22:30Z: BR will miss 2 of 2 runs"},
		{"a suspension that is over", "9500 day", 0, "", suspended("20:00"), unused},
		{"set aside until 21:00", "9500 day", 9000, "30 20,22 * * * BR", aside(498),
			short + "BR will miss 1 run at 20:30Z; to avoid it, release reservation r1"},
		{"all set aside until 21:00", "9500 day", 9000, "0 8 * * * BR", aside(500),
			allDay + "21:00Z; to avoid it, release reservation r1"},
		{"units that leave a sliding window", "6 24h", 0, "0 21,22 * * * BR",
			before(spent(clock(t, "2026-11-20 21:00:00"), 4), spent(on("08:30"), 2)),
			"default is exhausted (default 24h) until 21:00Z: BR will miss 1 run at 22:00Z"},
		{"sliding only, and no reset", "8 24h", 0, "0 21,22,23 * * * BR", noReset,
			"default lasts to 2026-11-22 20:00Z, but the schedule does not fit: " +
				"BR will miss 1 run at 23:00Z; to avoid it, set pages to 2"},
		{"what the runs spend leaves the window too", "8 1h", 0, "0,30 * * * * BR", nil, lasts},
		{"sliding only, far ahead", "800 240h", 0, "0 21 * * * BR", noReset,
			"default lasts to 2026-12-01 20:00Z"},
		{"the tighter of two", "9500 day, 20 1h", 9000, "0,20,40 22 * * * BR AU", nil,
			"default runs dry at 22:40Z" + before8 +
				"AU will miss 1 run at 22:40Z; to avoid it, set pages to 3"},
		{"a throttle does not make it dry", "9500 day, 2 1m", 0, "0 22 * * * BR AU", nil,
			lasts + ", but BR and AU will lose 6 of 8 pages at 22:00Z to the limit default 1m; " +
				"to avoid it, set pages to 1"},
		{"a throttle and time enough", "9500 day, 4 1m", 0, "0 22 * * * BR AU",
			func(b *Bucket) { staggered(b.Lanes, time.Minute) }, lasts},
		{"held back by a pace, which does not make it dry", "9500 day", 9480, "0 * * * * BR",
			pace(0, nil),
			lasts + ", but BR will miss 11 runs from 21:00Z on, held back by the pace"},
		{"all of the day in its last hour", "9500 day", 0, "0 */3 * * * BR", pace(0, lastHour()),
			lasts + ", but BR will miss 4 runs from 21:00Z on, held back by the pace"},
		{"a floor that a pace does not hold back", "9500 day", 0, "0 */3 * * * BR",
			pace(5, lastHour()),
			lasts + ", but BR will miss 2 runs from 2026-11-22 03:00Z on, held back by the pace; " +
				"to avoid it, set pages to 1"},
		{"a job that its own pace holds back", "9500 day", 0, "0 */3 * * * BR",
			func(b *Bucket) {
				pace(0, lastHour())(b)
				b.Lanes[0].OwnPaces, b.Paces = new(share.Paces(b.Paces)), nil
			},
			lasts + ", but BR will miss 4 runs from 21:00Z on, held back by the pace"},
		{"a job that holds more than it takes", "9500 day", 9480, "0 * * * * BR", took(4, 1),
			lasts},
		{"a job that holds more than is left, and takes less", "9500 day", 9498, "0 22 * * * BR",
			took(4, 1), short + "BR will miss 1 run at 22:00Z; to avoid it, " + changeSchedule},
		{"of one moment, who was served least lately goes first", "6 1h", 0, "0 22 * * * BR AU",
			before(entries("BR", on("18:00")), entries("AU", on("17:00"))),
			"default runs dry at 22:00Z" + before8 +
				"BR will lose 2 of 4 pages at 22:00Z; to avoid it, set pages to 3"},
		{"a chart that was cut off is resumed", "6 12m", 0, "0,13 22 * * * BR AU", nil,
			"default runs dry at 22:00Z" + before8 +
				"AU will lose 2 of 4 pages at 22:00Z; to avoid it, set pages to 3"},
		{"free again after the reset, at a moment that is known", "6 24h", 0, "",
			before(spent(on("17:30"), 6)),
			"default is exhausted (default 24h) until 2026-11-22 17:30Z"},
		{"the same of two limits", "6 24h, 5 day", 0, "0 22,23 * * * BR",
			before(spent(on("17:30"), 6)),
			allDay + "2026-11-22 17:30Z: BR will miss 2 of 2 runs"},
		{"spread over the day by the even line", "24 day", 0, "0 * * * * US GB", nil,
			short + "US and GB will miss 16 of 22 runs; to avoid it, set pages to 1"},
		{"a day after a run that was a little late", "4 24h", 0, "0 22 * * * BR",
			before(spent(clock(t, "2026-11-20 22:00:00").Add(300*time.Millisecond), 4)),
			"default is exhausted (default 24h) until 22:01Z: BR will miss 1 run at 22:00Z"},
		{"without a share of its own", "6 day", 0, "0 22 * * * BR AU", other("search_list", 1),
			"search_list runs dry at 22:00Z" + before8 +
				"AU will lose 2 of 4 pages at 22:00Z; to avoid it, set pages to 3"},
	} {
		b := bucketAt(t, "2026-11-21 20:00:00", test.limits, test.lanes)
		if test.spent > 0 {
			b.Spent = spent(on("08:30"), test.spent)
		}
		if test.more != nil {
			test.more(&b)
		}
		if got := ForecastOf(b).Text(); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestFields: the fields agree with the forecast's text.
func TestFields(t *testing.T) {
	f := ForecastOf(bucketAt(t, "2026-11-21 20:00:00", "10 5h", "0 21,22,23 * * * BR",
		spent(clock(t, "2026-11-21 18:00:00"), 5)))
	if f.Verdict != RunsDry || f.Remaining != 5 || f.Limit != "default 5h" ||
		f.Scheduled != (Work{3, 12, 12}) || f.Lost != (Work{1, 3, 3}) || f.Rate != (Rate{}) ||
		f.LeftOut != (Work{}) {
		t.Errorf("%+v", f)
	}
	for name, got := range map[string][2]time.Time{
		"dry":      {f.DryAt, clock(t, "2026-11-21 22:00:00")},
		"earliest": {f.Earliest, f.DryAt}, "latest": {f.Latest, f.DryAt},
		// the spending at 17:00 has left the window
		"opens": {f.OpensAt, clock(t, "2026-11-21 23:00:00")},
		"reset": {f.ResetAt, clock(t, "2026-11-22 08:00:00")},
	} {
		if !got[0].Equal(got[1]) {
			t.Errorf("%s: %v, want %v", name, got[0], got[1])
		}
	}
	if len(f.LostRuns) != 1 || f.LostRuns[0].Wanted != 4 || f.LostRuns[0].Missing() != 3 ||
		f.LostRuns[0].Limit != "default 5h" ||
		f.LostRuns[0].ID() != "trending/BR/2026-11-21T22:00:00Z" {
		t.Errorf("%+v", f.LostRuns)
	}
}

// TestWorkedExample checks the example in the package. The reset is at 08:00Z, midnight in Los
// Angeles.
func TestWorkedExample(t *testing.T) {
	start, noon := clock(t, "2026-11-21 08:00:00"), "2026-11-21 20:00:00"
	b := bucketAt(t, noon, "9500 day", "0 2-23/3 * * *"+regions, spent(start, 8300))
	if f := ForecastOf(b); f.Verdict != Lasts || !f.Earliest.IsZero() || f.Scheduled.Units != 128-32 {
		t.Errorf("the schedule alone: %s, %+v", f.Text(), f.Scheduled)
	}
	often := bucketAt(t, noon, "9500 day", "*/5 * * * *"+regions, spent(start, 8300))
	want := "default lasts to the reset, but the schedule does not fit: " +
		"US, GB and 6 more will miss 844 of 1,144 runs; to avoid it, set pages to 1"
	if got := ForecastOf(often).Text(); got != want {
		t.Errorf("every 5 minutes: %s", got)
	}
	besides := b
	besides.Spent = join(spent(start, 8300-1440), flow(start, b.At, 5*time.Minute, 10))
	f := ForecastOf(besides)
	if f.DryAt.Sub(clock(t, "2026-11-22 05:10:00")).Abs() > 20*time.Minute {
		t.Errorf("120 an hour in addition: %s", f.Text())
	}
	until := b.At.Add(2 * time.Hour)
	b.Reservations = []quota.Reservation{{Units: 1200, Left: 1200, CreatedAt: start,
		ExpiresAt: until}}
	if f := ForecastOf(b); f.Verdict != Exhausted || !f.OpensAt.Equal(until) {
		t.Errorf("with a reservation: %s", f.Text())
	}
}
