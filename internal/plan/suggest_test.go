package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// TestSuggest: eight regions of four pages take 32 units a round.
func TestSuggest(t *testing.T) {
	same := lanes(t, "* * * * *", 4, 0, eight...)
	for _, c := range []struct {
		name    string
		lanes   []share.Lane
		zone    string
		limits  []quota.Limit
		share   float64
		pages   int64
		spec    string
		stagger time.Duration
	}{
		// 48 rounds of 30 minutes take 1,536; 60 of 24 would take 1,920.
		{"a sliding day", same, los, rolling(1590), 1, 4, "*/30 * * * *", 3 * time.Minute},
		// On the day of 25 hours the wall clock of Los Angeles has 48 such rounds too; by UTC there
		// are 50, which take 1,600.
		{"the upstream's day", same, los, []quota.Limit{daily(t, 1590, los)}, 1, 4, "*/30 * * * *",
			3 * time.Minute},
		{"the upstream's day, by UTC", same, "UTC", []quota.Limit{daily(t, 1590, los)}, 1, 4,
			"@every 32m", 4 * time.Minute},
		{"a fifth of it", same, los, rolling(9500), 0.2, 4, "*/30 * * * *", 3 * time.Minute},
		// 32 rounds of 45 minutes, by real time: 1,024; on the day of 25 hours 34 begin, of which
		// 33 and the first lanes of one.
		{"no cron spec says it", same, los, rolling(1030), 1, 4, "@every 45m", 5 * time.Minute},
		{"a daily round", same, "UTC", rolling(32), 1, 4, "0 0 * * *", 3 * time.Hour},
		// In Los Angeles two rounds are 23 hours apart once a year: 32 + 4 units in 24 hours.
		{"a daily round where the clock goes forward", same, los, rolling(32), 1, 3, "0 0 * * *",
			3 * time.Hour},
		{"fewer pages", same, "UTC", rolling(25), 1, 3, "0 0 * * *", 3 * time.Hour},
		// 4 units in any hour: with rounds of 8 hours the lanes are an hour apart, and page 1 comes
		// as the hour of the last is over.
		{"a short window", same, "UTC", []quota.Limit{sliding(4, time.Hour), rolling(9500)[0]}, 1, 4,
			"0 */8 * * *", time.Hour},
		{"half of a short window", same, "UTC", []quota.Limit{sliding(8, time.Hour), rolling(9500)[0]},
			0.5, 4, "0 */8 * * *", time.Hour},
		// Each job begins at the tick, so the first lanes of both take 6 units there, of 30 in an
		// hour; 20 in a round.
		{"two jobs", jobs(t, []int{4, 2}, []int{4, 2}), "UTC",
			[]quota.Limit{sliding(800, 24*time.Hour), sliding(30, time.Hour)}, 1, 0, "@every 48m",
			12 * time.Minute},
		{"not even a page a day", same, "UTC", rolling(7), 1, 0, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Plan{Lanes: c.lanes, Price: price, Limits: c.limits, Reset: day(t, los),
				From: clock(t, "2026-06-01 07:00:00"), To: clock(t, "2026-06-08 07:00:00")}
			s, ok := p.Suggest(t.Context(), Wish{Zone: zone(t, c.zone), Share: c.share})
			if ok != (c.spec != "") || s.Spec != c.spec || s.Stagger != c.stagger || s.Pages != c.pages {
				t.Fatalf("%v %+v %s stagger %s pages %d", ok, s.Report.Windows, s.Spec, s.Stagger,
					s.Pages)
			}
			if !ok {
				return
			}
			again := fedBack(t, p, s)
			if r := again.Execute(); !r.Fits() || len(r.Over(c.share)) > 0 || r.Runs == 0 {
				t.Errorf("it does not fit: %+v", r.First)
			}
		})
	}
}

// jobs assigns lanes to jobs of the given sizes. Every chart has the pages of its job.
func jobs(t testing.TB, lanesOf, pages []int) (all []share.Lane) {
	t.Helper()
	for j, n := range lanesOf {
		for _, l := range lanes(t, "*/10 * * * *", int64(pages[j]), time.Minute, eight[:n]...) {
			l.Job, l.Region = fmt.Sprint("job", j), fmt.Sprint(l.Region, j)
			all = append(all, l)
		}
	}
	return all
}

// fedBack returns the plan with the suggested schedule and stagger for all jobs.
func fedBack(t testing.TB, p Plan, s Suggestion) Plan {
	t.Helper()
	parsed, err := schedule.Parse(s.Spec, s.Zone)
	must(t, err)
	regions := make(map[string][]string)
	for _, l := range p.Lanes {
		regions[l.Job] = append(regions[l.Job], l.Region)
	}
	var again []share.Lane
	for _, l := range p.Lanes {
		for i, offset := range (schedule.Stagger{Step: s.Stagger}).Offsets(regions[l.Job], parsed) {
			if regions[l.Job][i] == l.Region {
				l.Schedule, l.Offset = parsed, offset
			}
		}
		if s.Pages > 0 {
			l.Pages = s.Pages
		}
		again = append(again, l)
	}
	p.Lanes = again
	for range 367 {
		_, p.To = p.Reset.Bounds(p.To)
	}
	return p
}

// TestSuggestFedBack: the suggestion fits, for any jobs.
func TestSuggestFedBack(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	found, reduced := 0, 0
	for i := range 16 {
		var lanes, pages []int
		for range 1 + random.IntN(3) {
			lanes, pages = append(lanes, 1+random.IntN(4)), append(pages, 1+random.IntN(5))
		}
		limits := []quota.Limit{sliding(10+random.Int64N(200), 24*time.Hour),
			sliding(4+random.Int64N(20), time.Hour),
			daily(t, 10+random.Int64N(200), "America/Los_Angeles")}
		p := Plan{Lanes: jobs(t, lanes, pages), Price: price, Limits: limits,
			Reset: day(t, "America/Los_Angeles"),
			From:  clock(t, "2026-11-01 07:00:00"), To: clock(t, "2026-11-02 08:00:00")}
		wish := Wish{Zone: zone(t, []string{"UTC", "Europe/Berlin"}[i%2]),
			Share: []float64{1, 0.8, math.Inf(1)}[i%3]}
		s, ok := p.Suggest(t.Context(), wish)
		if !ok {
			continue
		}
		found++
		if s.Pages > 0 && s.Pages < p.maxPages() {
			reduced++
		}
		again := fedBack(t, p, s)
		if r := again.Execute(); !r.Fits() || len(r.Over(wish.Share)) > 0 || r.Runs == 0 {
			t.Errorf("lanes %d of pages %d, %v: %q %s stagger %s pages %d does not fit: %+v", lanes,
				pages, limits, s.Spec, s.Zone, s.Stagger, s.Pages, r.First)
		}
	}
	if found < 12 || reduced == 0 {
		t.Errorf("%d suggestions, %d with fewer pages: the limits are drawn badly", found, reduced)
	}
}

// TestAfterReset: a spent month is empty again in the next one, not on the next day.
func TestAfterReset(t *testing.T) {
	month := quota.Limit{Bucket: quota.DefaultBucket, Units: 100,
		Window: quota.Window{Calendar: "month", Zone: zone(t, "Europe/Berlin")}}
	p := Plan{Reset: day(t, los), From: clock(t, "2026-06-01 12:00:00"),
		Limits: []quota.Limit{daily(t, 10, los)}}
	for want, limits := range map[string][]quota.Limit{
		"2026-06-02 07:00:00": p.Limits,
		"2026-06-30 22:00:00": append(p.Limits, month),
	} {
		p.Limits = limits
		if got := p.AfterReset().From; got != clock(t, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
