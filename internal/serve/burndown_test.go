package serve

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

func dayOf(t *testing.T, units, headroom int64) quota.Limit {
	t.Helper()
	window, err := quota.ParseWindow("day", "America/Los_Angeles")
	must(t, err)
	return quota.Limit{Bucket: "default", Units: units, Headroom: headroom, Window: window}
}

func sum(at time.Time, units int64) quota.Sum { return quota.Sum{At: at, Units: units} }

// The units left fall when units are spent, and within ten minutes in proportion.
func TestBurn(t *testing.T) {
	l := dayOf(t, 1000, 100)
	from, to := l.Window.Bounds(nine)
	b := account{Main: quota.LimitUsage{Limit: l, Remaining: 550}, from: from, to: to,
		At:   from.Add(7*time.Hour + 5*time.Minute),
		sums: []quota.Sum{sum(from.Add(time.Hour), 100), sum(from.Add(7*time.Hour), 200)}}
	for after, want := range map[time.Duration]float64{0: 900, time.Hour: 900,
		time.Hour + 5*time.Minute: 850, 70 * time.Minute: 800, 7 * time.Hour: 800,
		7*time.Hour + 150*time.Second: 700, 7*time.Hour + 5*time.Minute: 600} {
		if got := b.leftAt(from.Add(after)); got != want {
			t.Errorf("after %s: %g, want %g", after, got, want)
		}
	}
	past := b.past()
	if last := past[len(past)-1]; !last.at.Equal(b.At) || last.value != 550 {
		t.Errorf("now: %v: held units count as left", last)
	}
	spent := int64(0)
	rows := b.rows()
	for _, row := range rows {
		spent += row.Spent
	}
	if len(rows) != 8 || spent != 300 || rows[1].Spent != 100 || rows[7].Left != 550 {
		t.Errorf("rows %v", rows)
	}
}

// TestBurn_Anchored: a window whose end the upstream reported is empty at that end. One window
// length later, it slides.
func TestBurn_Anchored(t *testing.T) {
	anchored, err := quota.ParseWindow("anchored 5h", "")
	must(t, err)
	b := account{Main: quota.LimitUsage{Limit: quota.Limit{Units: 1000, Window: anchored}}, At: nine,
		BucketUsage: quota.BucketUsage{ResetAt: nine.Add(-time.Hour)}, from: nine.Add(-5 * time.Hour),
		sums: []quota.Sum{sum(nine.Add(-7*time.Hour), 90), sum(nine.Add(-5*time.Hour), 300),
			sum(nine.Add(-30*time.Minute), 50)}}
	for before, want := range map[time.Duration]float64{4 * time.Hour: 700, 90 * time.Minute: 700,
		time.Hour: 1000, 0: 950} {
		if got := b.leftAt(nine.Add(-before)); got != want {
			t.Errorf("%s before: %g, want %g", before, got, want)
		}
	}
}

// In a sliding window, the units left equal the ledger's answer at each moment.
func TestBurn_Ledger(t *testing.T) {
	_, b := newBudget(t, 10_000)
	dice := rand.New(rand.NewPCG(1, 2))
	limit := quota.Limit{Bucket: "default", Units: 10_000, Headroom: 500,
		Window: quota.Sliding(24 * time.Hour)}
	left := make(map[time.Time]float64)
	for at := nine.Add(-47 * time.Hour); !at.After(nine); at = at.Add(quota.Grain) {
		b.now = at.Add(-time.Microsecond) // a charge at the moment itself does not count yet
		usage, err := b.Ledger.Usage(t.Context(), "key1", []quota.Limit{limit})
		must(t, err)
		left[at] = float64(usage.Buckets[0].Limits[0].Remaining)
		if dice.IntN(3) == 0 {
			b.charge(at, "youtube.videos.list", 1+dice.Int64N(40), "job=trending")
		}
	}
	sums, err := b.ledger.Sums(t.Context(), quota.SumQuery{Credential: "key1", Bucket: "default"})
	must(t, err)
	drawn := account{Main: quota.LimitUsage{Limit: limit}, from: nine.Add(-24 * time.Hour), to: nine,
		At: nine, sums: byGrain(sums)}
	for at := drawn.from; !at.After(nine); at = at.Add(quota.Grain) {
		if got := drawn.leftAt(at); math.Abs(got-left[at]) > 1e-6 {
			t.Fatalf("at %s: %g, the ledger returned %g", at, got, left[at])
		}
	}
}

// The forecast begins with the units left and ends at zero where the bucket runs dry; days of high
// spending are below days of low spending.
func TestAhead(t *testing.T) {
	l := dayOf(t, 1000, 100)
	from, to := l.Window.Bounds(nine)
	now := from.Add(12 * time.Hour)
	b := account{Main: quota.LimitUsage{Limit: l, Remaining: 500}, from: from, to: to, At: now,
		Forecast: plan.Forecast{ResetAt: to, Rate: plan.Rate{Low: 5, Likely: 10, High: 20},
			Scheduled: plan.Work{Units: 120}}}
	likely, low, high := b.ahead()
	end := len(likely) - 1
	got := [3]float64{low[end].value, likely[end].value, high[end].value}
	if want := [3]float64{140, 260, 320}; got != want {
		t.Errorf("at the reset %v, want %v", got, want)
	}
	for i := range likely {
		if low[i].value > likely[i].value || likely[i].value > high[i].value {
			t.Errorf("at %s %g, %g, %g", likely[i].at, low[i].value, likely[i].value, high[i].value)
		}
	}
	b.Forecast.DryAt = now.Add(6 * time.Hour)
	likely, _, _ = b.ahead()
	for _, p := range likely {
		if dry := !p.at.Before(b.Forecast.DryAt); dry != (p.value == 0) {
			t.Errorf("at %s %g, dry at %s", p.at, p.value, b.Forecast.DryAt)
		}
	}
}

func TestMainLimit(t *testing.T) {
	use := func(l quota.Limit, remaining int64) quota.LimitUsage {
		return quota.LimitUsage{Limit: l, Remaining: remaining}
	}
	slides := quota.Limit{Window: quota.Sliding(24 * time.Hour)}
	minute := quota.Limit{Window: quota.Sliding(time.Minute)}
	for _, c := range []struct {
		of   []quota.LimitUsage
		want string
	}{
		{[]quota.LimitUsage{use(slides, 300), use(dayOf(t, 1, 0), 400)}, "day"},
		{[]quota.LimitUsage{use(slides, 100), use(dayOf(t, 1, 0), 400)}, "24h"},
		{[]quota.LimitUsage{use(minute, 1), use(slides, 900)}, "24h"},
		{[]quota.LimitUsage{use(minute, 1)}, "1m"},
	} {
		if got := mainLimit(c.of).Limit.Window.Text(); got != c.want {
			t.Errorf("%v: %s, want %s", c.of, got, c.want)
		}
	}
}

func TestSpenders(t *testing.T) {
	sums := []quota.Sum{
		{At: nine.Add(-time.Hour), Units: 1000, Labels: quota.Labels{"job": "old"}},
		{At: nine, Units: 60, Labels: quota.Labels{"job": "trending", "region": "US"}},
		{At: nine, Units: 20, Labels: quota.Labels{"method": "youtube.search.list"}},
		{At: nine.Add(time.Hour), Units: 20, Labels: quota.Labels{}},
	}
	for i := range 6 {
		labels := quota.Labels{"job": "j" + string(rune('0'+i))}
		sums = append(sums, quota.Sum{At: nine, Units: 1, Labels: labels})
	}
	got := spenders(sums, nine)
	want := []spender{{"trending US", 60, 56}, {"(no label)", 20, 18},
		{"youtube.search.list", 20, 18}, {"j0", 1, 1}, {"j1", 1, 1}, {"4 others", 4, 3}}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %v, want %v", i, got[i], want[i])
		}
	}
}
