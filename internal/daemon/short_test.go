package daemon_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// midnight is a reset of the upstream.
var midnight = time.Date(2026, time.June, 2, 7, 0, 0, 0, time.UTC)

// weighted sets the weights of lanes, in order.
func weighted(all []share.Lane, weights ...int64) []share.Lane {
	for i, w := range weights {
		all[i].Weight = w
	}
	return all
}

// completed counts the runs of each region, and those in the last six hours before the reset.
func completed(w *env, all []share.Lane) (runs, late map[string]int) {
	runs, late = make(map[string]int), make(map[string]int)
	for id := range w.runs(eight) {
		_, rest, _ := strings.Cut(id, "/")
		region, moment, _ := strings.Cut(rest, "/")
		scheduled, err := time.Parse(time.RFC3339, moment)
		must(w, err)
		runs[region]++
		if scheduled.After(midnight.Add(18 * time.Hour)) {
			late[region]++
		}
	}
	return runs, late
}

// TestShortDay: with 60 % of the units that the schedule wants, each region gets runs in
// proportion to its weight, until the end of the day. First come, first served fails the same
// check.
func TestShortDay(t *testing.T) {
	t.Parallel()
	const wanted = 8 * 24 * 2
	const units = wanted * 6 / 10
	// 230 units are 115 runs, in ten parts: two of them for each of weight 2, which is 23 of its
	// 24 ticks.
	wantRuns := map[string]float64{"US": 23, "GB": 23}
	for region := range strings.FieldsSeq("DE FR IN BR AU CA") {
		wantRuns[region] = 11.5
	}
	unfair := func(w *env, all []share.Lane) (complaints []string) {
		runs, late := completed(w, all)
		for region, want := range wantRuns {
			if math.Abs(float64(runs[region])-want) > 1 {
				complaints = append(complaints, region+" is not served by its weight")
			}
			if late[region] == 0 {
				complaints = append(complaints, region+" starves at the end of the day")
			}
		}
		t.Log(runs, late)
		return complaints
	}
	day := func(t *testing.T, first bool, check func(*env, []share.Lane)) {
		at(t, midnight.Add(-time.Second), units, func(w *env) {
			all := weighted(lanes(t, "0 * * * *", "UTC", eight, 5*time.Minute), 2, 2)
			if first { // another bucket, which is not shared
				w.limits[0].Bucket = "elsewhere"
			}
			p := w.open(all...)
			if first {
				price := []quota.Cost{{Bucket: "elsewhere", Units: 1}}
				p.sweep.Budget.Prices["youtube.videos.list"] = price
			}
			p.start()
			time.Sleep(24*time.Hour - time.Minute)
			check(w, all)
			p.end()
			if used := w.spent(); used[""] != 0 || sum(used) > units {
				t.Errorf("spent %v of %d", used, units)
			}
		})
	}
	t.Run("shared", func(t *testing.T) {
		day(t, false, func(w *env, all []share.Lane) {
			for _, complaint := range unfair(w, all) {
				t.Error(complaint)
			}
			if w.units() < units-8 {
				t.Errorf("only %d of %d units were used", w.units(), units)
			}
			if w.logged("units are short", "lane=trending/US", "weight=2") == 0 ||
				w.logged("tick left out", "share=") == 0 {
				t.Error("the shares were not logged")
			}
		})
	})
	t.Run("first come, first served", func(t *testing.T) {
		day(t, true, func(w *env, all []share.Lane) {
			if len(unfair(w, all)) == 0 {
				t.Error("the check accepts first come, first served")
			}
		})
	})
}

func sum(units map[string]int64) (all int64) {
	for _, n := range units {
		all += n
	}
	return all
}

// TestPaced: a denial by a pace is not exhaustion.
func TestPaced(t *testing.T) {
	at(t, midnight.Add(-time.Second), 240, func(w *env) {
		w.paces = w.line(&quota.Pace{Slack: 4})
		// 12 units an hour under a pace of 10; enough for the day
		p := w.open(lanes(t, "*/10 0-5 * * *", "America/Los_Angeles", "US", 0)...)
		p.start()
		time.Sleep(6 * time.Hour)
		_, metrics := p.scrape("/metrics")
		p.end()
		if !strings.Contains(metrics, `quota_denials_total{credential="key1",limit="pace"}`) ||
			w.logged("tick denied", "limit=pace", "retry_at=") == 0 {
			t.Error("no denial by the pace")
		}
		if used := w.units(); used > 64 || used < 60 {
			t.Errorf("%d units in six hours", used)
		}
	})
}

// TestRunsCostTheirCharts: a run is estimated to cost as much as the region's last complete
// chart, at most the configured pages.
func TestRunsCostTheirCharts(t *testing.T) {
	at(t, midnight, 10, func(w *env) {
		chart := func(region string, pages int, complete bool) {
			t.Helper()
			page := catalog.Page{Next: "1", FetchedAt: time.Now(), Last: complete && pages == 1}
			key := region
			id, _, err := w.look.catalog.Begin(w.Context(), key, "run", 0, page)
			for n := 1; err == nil && n < pages; n++ {
				page.Token, page.Next = page.Next, fmt.Sprint(n+1)
				page.Last = complete && n == pages-1
				if region == "US" && page.Last { // the other charts have more pages
					page.Next = ""
				}
				_, err = w.look.catalog.StorePage(w.Context(), id, page)
			}
			must(t, err)
		}
		chart("US", 2, true)
		chart("US", 1, false)
		chart("JP", 1, false)
		chart("KR", 4, true)
		chart("GB", 2, true)
		all := lanes(t, "@daily", "UTC", "US JP KR GB", 0)
		for i := range all {
			all[i].Pages = 3
		}
		w.look.config.Lanes = w.look.sweep.Lanes(all)
		shares, err := w.look.config.Shares(w.Context(), "key1")
		if err != nil || len(shares) != 4 {
			t.Fatal(shares, err)
		}
		for i, want := range []int64{2, 3, 3, 3} {
			if got := shares[i]; got.Wants != want {
				t.Errorf("a run of %s costs %d, want %d", got.Region, got.Wants, want)
			}
		}
	})
}

// TestNotReady: the response of /readyz names what is missing.
func TestNotReady(t *testing.T) {
	at(t, midnight, 10, func(w *env) {
		p := w.open(lanes(t, "@daily", "UTC", "US", 0)...).start()
		time.Sleep(time.Second)
		must(t, p.catalog.Close())
		p.expectReadyz(http.StatusServiceUnavailable, "catalogue: ")
		if code, _ := p.scrape("/healthz"); code != http.StatusOK {
			t.Errorf("not alive: %d", code)
		}
	})
}
