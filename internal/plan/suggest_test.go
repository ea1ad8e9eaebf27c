package plan

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestSuggest: eight regions of four pages take 32 units a round.
func TestSuggest(t *testing.T) {
	los := "America/Los_Angeles"
	for _, c := range []struct {
		name    string
		zone    string
		limits  []quota.Limit
		share   float64
		pages   int64
		spec    string
		stagger time.Duration
	}{
		// 48 rounds of 30 minutes take 1,536; 60 of 24 would take 1,920.
		{"a sliding day", los, []quota.Limit{sliding(1590, 24*time.Hour)}, 1, 4, "*/30 * * * *", 3 * time.Minute},
		// On the day of 25 hours the wall clock of Los Angeles has 48 such rounds too; by UTC there are 50, which take 1,600.
		{"the upstream's day", los, []quota.Limit{daily(t, 1590, los)}, 1, 4, "*/30 * * * *", 3 * time.Minute},
		{"the upstream's day, by UTC", "UTC", []quota.Limit{daily(t, 1590, los)}, 1, 4, "@every 32m", 4 * time.Minute},
		{"a fifth of it", los, []quota.Limit{sliding(9500, 24*time.Hour)}, 0.2, 4, "*/30 * * * *", 3 * time.Minute},
		// 32 rounds of 45 minutes, by real time: 1,024; on the day of 25 hours 34 begin, of which 33 and the first lanes of one.
		{"no cron spec says it", los, []quota.Limit{sliding(1030, 24*time.Hour)}, 1, 4, "@every 45m", 5 * time.Minute},
		{"a daily round", "UTC", []quota.Limit{sliding(32, 24*time.Hour)}, 1, 4, "0 0 * * *", 3 * time.Hour},
		// In Los Angeles two rounds are 23 hours apart once a year: 32 + 4 units in 24 hours.
		{"a daily round where the clock goes forward", los, []quota.Limit{sliding(32, 24*time.Hour)}, 1, 3, "0 0 * * *", 3 * time.Hour},
		{"fewer pages", "UTC", []quota.Limit{sliding(25, 24*time.Hour)}, 1, 3, "0 0 * * *", 3 * time.Hour},
		// 4 units in any hour: with rounds of 8 hours the lanes are an hour apart, and page 1 comes as the hour of the last is over.
		{"a short window", "UTC", []quota.Limit{sliding(4, time.Hour), sliding(9500, 24*time.Hour)}, 1, 4, "0 */8 * * *", time.Hour},
		{"half of a short window", "UTC", []quota.Limit{sliding(8, time.Hour), sliding(9500, 24*time.Hour)}, 0.5, 4, "0 */8 * * *", time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Plan{Lanes: lanes(t, "* * * * *", 4, 0, eight...), Price: price, Limits: c.limits, Reset: day(t, los),
				From: at(t, "2026-06-01T07:00:00Z"), To: at(t, "2026-06-08T07:00:00Z")}
			s, ok := p.Suggest(Wish{Zone: zone(t, c.zone), Share: c.share})
			if !ok || s.Spec != c.spec || s.Stagger != c.stagger || s.Pages != c.pages {
				t.Fatalf("%v %+v %s stagger %s pages %d", ok, s.Report.Windows, s.Spec, s.Stagger, s.Pages)
			}
			if r := s.Tried.Execute(); !r.Fits() || len(r.Over(c.share)) > 0 || r.Runs == 0 {
				t.Errorf("it does not fit: %+v", r.First)
			}
		})
	}
	p := Plan{Lanes: lanes(t, "* * * * *", 4, 0, eight...), Price: price, Limits: []quota.Limit{sliding(7, 24*time.Hour)}, Reset: day(t, los),
		From: at(t, "2026-06-01T07:00:00Z"), To: at(t, "2026-06-08T07:00:00Z")}
	if s, ok := p.Suggest(Wish{Zone: time.UTC, Share: 1}); ok {
		t.Errorf("%+v", s)
	}
}
