package plan

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/memstore"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// TestExecute_Ledger: the real ledger denies the same pages as the plan, with the same limit and
// retry time. Runs left out by their share, and pages a chart already has, are not charged.
func TestExecute_Ledger(t *testing.T) {
	ledger, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	defer ledger.Close()
	var now time.Time
	ledger.Now = func() time.Time { return now }
	credentials := 0 // each plan uses a new credential
	budget := func(p Plan) *quota.Budget {
		credentials++
		return &quota.Budget{Ledger: ledger, Credential: fmt.Sprint("key", credentials),
			Limits: p.Limits, Paces: p.Paces, Prices: map[string][]quota.Cost{"list": price}}
	}
	resumed := 0
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		length := p.To.Sub(p.From) // each page is a transaction
		p.To = p.From.Add(max(length/8, min(length, 2*time.Hour)))
		now = p.From
		b := budget(p)
		p.Before = []Standing{before(t, b, &now)}
		now = p.From
		resumed += charged(t, p, b, &now)
	})
	t.Logf("%d runs have resumed a chart", resumed)
	p := Plan{Lanes: lanes(t, "*/5 * * * *", 4, time.Minute, "US", "BR"),
		Limits: []quota.Limit{sliding(5, 4*time.Minute), sliding(40, time.Hour)},
		Price:  price, Reset: day(t, "UTC"),
		From: clock(t, "2026-06-01 00:00:00"), To: clock(t, "2026-06-01 03:00:00")}
	if n := charged(t, p, budget(p), &now); n < 12 {
		t.Errorf("%d runs have resumed a chart", n)
	}
}

// charged executes a plan and charges the pages of its runs to a budget. It returns the number of
// runs that resumed a chart.
func charged(t rapid.TB, p Plan, b *quota.Budget, now *time.Time) (resumed int) {
	runs, _ := played(p)
	for i, run := range runs {
		lane := laneOf(p, run)
		wanted := missing(lane, runs[:i], run.At)
		if run.Wanted != wanted || run.Lost() == (run.Pages == wanted) {
			t.Fatalf("%v: %d pages are missing", run, wanted)
		}
		if run.Outcome == LeftOut {
			continue
		}
		if wanted < lane.Pages && run.Pages > 0 {
			resumed++
		}
		*now = run.At
		unpaced := belowFloor(p, lane, runs[:i], run.At)
		charge := func(count int64) quota.Decision {
			d, err := b.Charge(context.Background(),
				quota.Call{Method: "list", Count: count, Unpaced: unpaced})
			if err != nil && !d.Never {
				t.Fatal(err)
			}
			return d
		}
		if wanted > 1 && charge(wanted).Allowed { // a run is charged at once if it fits
			if run.Lost() {
				t.Fatalf("%v: the ledger allows all pages", run)
			}
			continue
		}
		for page := range wanted {
			d := charge(1)
			if d.Allowed != (page < run.Pages) {
				t.Fatalf("%v: page %d: the ledger says %+v", run, page, d)
			}
			if d.Allowed {
				continue
			}
			if d.Limit != run.Limit || !d.RetryAt.Equal(run.RetryAt) {
				t.Fatalf("%v: the ledger says %s, retry %s", run, d.Limit, d.RetryAt)
			}
			break
		}
	}
	return resumed
}

// before charges and reserves some units in the day before the plan, and returns the ledger's
// state.
func before(t *rapid.T, b *quota.Budget, now *time.Time) Standing {
	ctx := context.Background()
	from := *now
	for i := range rapid.IntRange(0, 6).Draw(t, "charges before") {
		*now = from.Add(-24*time.Hour + time.Duration(i)*4*time.Hour)
		call := quota.Call{Bucket: quota.DefaultBucket,
			Units: rapid.Int64Range(1, 20).Draw(t, "units before")}
		if d, err := b.Charge(ctx, call); err != nil && !d.Never {
			t.Fatal(err)
		}
	}
	learn(t, b, now)
	for range rapid.IntRange(0, 3).Draw(t, "held") {
		cost := quota.Cost{Bucket: quota.DefaultBucket,
			Units: rapid.Int64Range(1, 20).Draw(t, "units held")}
		if rapid.Bool().Draw(t, "an estimate") {
			cost.Most = cost.Units + rapid.Int64Range(0, 20).Draw(t, "more")
		}
		request := quota.ReserveRequest{
			Call: quota.Call{Costs: []quota.Cost{cost}},
			TTL:  time.Duration(rapid.IntRange(50, 1800).Draw(t, "ttl")) * time.Minute,
			Lapse: rapid.SampledFrom([]quota.Lapse{quota.LapseRelease,
				quota.LapseCharge}).Draw(t, "lapse")}
		if d, err := b.Reserve(ctx, request); err != nil && !d.Never {
			t.Fatal(err)
		}
	}
	known := Standing{Name: quota.DefaultBucket}
	if rapid.IntRange(0, 3).Draw(t, "suspended") == 0 {
		hours := rapid.IntRange(1, 10).Draw(t, "hours suspended")
		known.SuspendedUntil = from.Add(time.Duration(hours) * time.Hour)
		must(t, b.Ledger.Suspend(ctx, quota.Suspension{Credential: b.Credential,
			Bucket: quota.DefaultBucket, Until: known.SuspendedUntil}))
	}
	return standing(t, b, known)
}

// standing reads the ledger's state.
func standing(t rapid.TB, b *quota.Budget, known Standing) Standing {
	ctx := context.Background()
	query := quota.Query{Credential: b.Credential, Bucket: quota.DefaultBucket}
	entries, err := b.Ledger.Entries(ctx, query)
	must(t, err)
	for _, e := range entries {
		known.Spent = append(known.Spent, quota.Spent{At: e.At, Units: e.Units, Charges: 1})
	}
	usage, err := b.Usage(ctx)
	must(t, err)
	known.ResetAt = usage.Buckets[0].ResetAt
	known.Reservations, err = b.Ledger.Reservations(ctx, b.Credential, quota.DefaultBucket)
	must(t, err)
	return known
}

// learn records when an anchored window ends, some hours before the plan or now.
func learn(t *rapid.T, b *quota.Budget, now *time.Time) {
	from := *now
	i := slices.IndexFunc(b.Limits, func(l quota.Limit) bool { return l.Window.Anchored })
	if i < 0 || rapid.Bool().Draw(t, "untold") {
		return
	}
	*now = from.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "reported")) * time.Hour)
	end := now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "ends")) * time.Minute)
	_, err := b.Learn(context.Background(), quota.Learn{Limit: b.Limits[i], Remaining: -1,
		Reset: end})
	must(t, err)
	*now = from
}

// TestExecute_Windows: under a window of each kind, with a limit that denies some pages, a
// reservation that lapses into an entry, and reported ends of an anchored window, the ledger
// agrees with the plan on each page.
func TestExecute_Windows(t *testing.T) {
	const none = time.Duration(0)
	for name, c := range map[string]struct {
		window string
		units  int64
		end    time.Duration // of an anchored window, from the plan's beginning
		from   string
		lost   int64 // runs
	}{
		"minute":              {"minute", 2, none, "2026-06-01 10:00:00", 5},
		"hour of a change":    {"hour", 6, none, "2026-10-25 00:00:00", 26},
		"day":                 {"day", 30, none, "2026-06-01 20:00:00", 33},
		"week, over Sunday":   {"week", 40, none, "2026-03-29 18:30:00", 30},
		"30 days to 31":       {"month", 40, none, "2026-09-30 18:30:00", 30},
		"31 days to 30":       {"month", 40, none, "2026-10-31 19:30:00", 30},
		"year end":            {"month", 40, none, "2026-12-31 19:30:00", 30},
		"an end to come":      {"anchored 3h", 14, 50 * time.Minute, "2026-06-01 10:00:00", 23},
		"an end that is past": {"anchored 3h", 14, -50 * time.Minute, "2026-06-01 10:00:00", 30},
		"no end":              {"anchored 3h", 14, none, "2026-06-01 10:00:00", 30},
		"restoring":           {"restoring 7/1h", 12, none, "2026-06-01 10:00:00", 16},
		"restoring slowly":    {"restoring 1/97s", 2, none, "2026-06-01 10:00:00", 5},
	} {
		t.Run(name, func(t *testing.T) {
			now := clock(t, c.from).Add(-2 * time.Hour)
			store := &memstore.Store{Now: func() time.Time { return now }}
			zone := ""
			if quota.IsCalendarWord(c.window) {
				zone = "Europe/Berlin"
			}
			w, err := quota.ParseWindow(c.window, zone)
			must(t, err)
			p := Plan{Lanes: lanes(t, "*/10 * * * *", 2, 0, "US"), Price: price,
				Limits: []quota.Limit{{Bucket: quota.DefaultBucket, Units: c.units, Window: w}},
				Reset:  day(t, "Europe/Berlin"), From: clock(t, c.from)}
			p.To = p.From.Add(8 * time.Hour)
			b := &quota.Budget{Ledger: ledger.New(store), Credential: "key1", Limits: p.Limits,
				Prices: map[string][]quota.Cost{"list": price}}
			spend := func(units int64) {
				_, err := b.Charge(t.Context(), quota.Call{Units: units})
				must(t, err)
			}
			spend(2)
			if c.end != 0 {
				_, err := b.Learn(t.Context(), quota.Learn{Limit: p.Limits[0], Remaining: -1,
					Reset: p.From.Add(c.end)})
				must(t, err)
			}
			now = p.From.Add(-20 * time.Minute)
			spend(1)
			_, err = b.Reserve(t.Context(), quota.ReserveRequest{Call: quota.Call{Units: 1},
				TTL: 100 * time.Minute, Lapse: quota.LapseCharge})
			must(t, err)
			now = p.From
			p.Before = []Standing{standing(t, b, Standing{Name: quota.DefaultBucket})}
			charged(t, p, b, &now)
			if r := p.Execute(); r.Lost() != c.lost {
				t.Errorf("%d runs are denied, %d cut off, and %d left out", r.Denied, r.Partial,
					r.LeftOut)
			}
		})
	}
}

var specs = []string{"0 * * * *", "*/20 * * * *", "30 */3 * * *", "0 0 * * *", "15 2 * * *",
	"@every 1000s", "@every 47m", "5,6 */2 * * *"}

// often lists specs whose ticks are close enough to resume an interrupted chart.
var often = []string{"*/10 * * * *", "*/5 * * * *", "0,15,31 * * * *", "@every 400s"}

// drawn returns a plan of a few lanes and limits over some days, some around a clock change. Half
// of them have frequent ticks for some hours, under a window that interrupts charts.
func drawn(t *rapid.T) Plan {
	draw := func(what string, low, high int64) int64 {
		return rapid.Int64Range(low, high).Draw(t, what)
	}
	los, err := time.LoadLocation("America/Los_Angeles")
	must(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	from := rapid.SampledFrom([]string{"2026-10-31 07:00:00", "2026-03-07 08:00:00",
		"2026-03-28 11:30:00", "2026-06-01 19:00:00", "2026-06-02 01:10:00",
		"2027-01-01 05:30:00", "2026-12-31 21:10:00"}).Draw(t, "from")
	p := Plan{Price: price, Reset: quota.Window{Calendar: "day", Zone: los}, From: clock(t, from)}
	specs, hours, fewest, crowded := specs, 60, int64(1), rapid.Bool().Draw(t, "crowded")
	if crowded {
		specs, hours, fewest = often, 8, 3
		short := quota.Sliding(time.Duration(rapid.IntRange(2, 25).Draw(t, "short")) * time.Minute)
		p.Limits = []quota.Limit{{Bucket: quota.DefaultBucket,
			Units: draw("units", 1, 9), Window: short}}
	}
	p.To = p.From.Add(time.Duration(rapid.IntRange(1, hours).Draw(t, "hours")) * time.Hour)
	for i := range rapid.IntRange(1, 5).Draw(t, "lanes") {
		s, err := schedule.Parse(rapid.SampledFrom(specs).Draw(t, "spec"),
			rapid.SampledFrom([]*time.Location{time.UTC, los}).Draw(t, "zone"))
		must(t, err)
		offset := time.Duration(rapid.IntRange(0, 3).Draw(t, "offset")) * 5 * time.Minute
		l := schedule.Lane{LaneID: schedule.LaneID{Job: "trending", Region: eight[i]},
			Schedule: s, Offset: offset}
		p.Lanes = append(p.Lanes, share.Lane{Lane: l,
			Pages: draw("pages", fewest, 5), Weight: draw("weight", 0, 3),
			Priority: draw("priority", 0, 1), Floor: draw("floor", 0, 20)})
	}
	windows := []quota.Window{quota.Sliding(24 * time.Hour), quota.Sliding(7 * time.Hour),
		quota.Sliding(time.Hour), quota.Sliding(7 * time.Minute),
		{Calendar: "day", Zone: los}, {Calendar: "day", Zone: berlin},
		{Calendar: "hour", Zone: los}, {Calendar: "minute", Zone: berlin},
		{Calendar: "week", Zone: berlin}, {Calendar: "month", Zone: los},
		{Length: 5 * time.Hour, Anchored: true},
		{Restore: quota.Rate{Units: draw("restored", 1, 9), Per: 7 * time.Minute}}}
	if !crowded && rapid.Bool().Draw(t, "one window") {
		windows = []quota.Window{rapid.SampledFrom(windows[7:]).Draw(t, "window")}
	}
	for _, w := range windows {
		if rapid.IntRange(0, 4).Draw(t, "limited") > 0 && len(p.Limits) > 0 {
			continue
		}
		units := draw("units", 0, 120)
		p.Limits = append(p.Limits, quota.Limit{Bucket: quota.DefaultBucket, Units: units,
			Headroom: min(units, draw("headroom", 0, 9)), Window: w})
	}
	if rapid.Bool().Draw(t, "paced") {
		pace := &quota.Pace{Slack: draw("slack", 0, 30)}
		if rapid.Bool().Draw(t, "curved") {
			pace.Curve = rapid.SliceOfN(rapid.Int64Range(0, 9), 24, 24).Draw(t, "curve")
			pace.Curve[12]++
		}
		p.Paces = []quota.Limit{{Bucket: quota.DefaultBucket, Units: draw("paced units", 1, 120),
			Window: p.Reset, Pace: pace}}
	}
	return p
}

// belowFloor counts whether a lane has not had its floor of the day, with pages of one unit.
func belowFloor(p Plan, lane share.Lane, before []Run, at time.Time) bool {
	start, _ := p.Reset.Bounds(at)
	left := lane.Floor
	for _, r := range before {
		if r.Region == lane.Region && !r.At.Before(start) {
			left -= r.Pages
		}
	}
	return left > 0
}

// settling is a ledger that runs settle between two reads.
type settling struct {
	*ledger.Ledger
	settle func()
}

func (l *settling) Reservations(ctx context.Context, credential, bucket string) (
	[]quota.Reservation, error) {
	held, err := l.Ledger.Reservations(ctx, credential, bucket)
	l.settle()
	return held, err
}

func (l *settling) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	sums, err := l.Ledger.Sums(ctx, q)
	l.settle()
	return sums, err
}

// TestRecall_Settled: Recall does not miss a hold that is settled while it reads the bucket.
func TestRecall_Settled(t *testing.T) {
	now := clock(t, "2026-06-01 12:00:00")
	l := ledger.New(&memstore.Store{Now: func() time.Time { return now }})
	b := &quota.Budget{Ledger: l, Credential: "k", Limits: rolling(100)}
	d, err := b.Reserve(t.Context(), quota.ReserveRequest{TTL: time.Hour,
		Call: quota.Call{Costs: []quota.Cost{{Bucket: quota.DefaultBucket, Units: 60}}}})
	must(t, err)
	settled := false
	settle := func() {
		if !settled {
			settled = true
			_, err := b.Settle(t.Context(), d.Reservation, quota.Call{})
			must(t, err)
		}
	}
	p := Plan{Price: price, Limits: b.Limits}
	must(t, p.Recall(t.Context(), &settling{l, settle}, b.Credential))
	units := int64(0)
	for _, r := range p.Before[0].Reservations {
		units += r.Left
	}
	for _, s := range p.Before[0].Spent {
		units += s.Units
	}
	if units < 60 {
		t.Errorf("%d units are held or spent, want 60: %+v", units, p.Before)
	}
}
