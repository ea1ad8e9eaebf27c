package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// TestExecute: days computed by hand. A line of want is a lost run.
func TestExecute(t *testing.T) {
	utc := day(t, "UTC")
	los := day(t, "America/Los_Angeles")
	const june = "2026-06-01 00:00:00"
	six := func(regions ...string) []share.Lane {
		return lanes(t, "0 */6 * * *", 4, 0, regions...)
	}
	hold := func(units int64, until string) []Standing {
		return []Standing{{Name: "default",
			Reservations: []quota.Reservation{{Left: units, ExpiresAt: clock(t, until)}}}}
	}
	for _, c := range []struct {
		name string
		plan Plan
		from string
		days int
		runs int64
		peak []int64 // of the limits
		left []int64 // margin
		want []string
	}{
		{"a longer window is shared: seven of eight runs in any 24 hours",
			Plan{Lanes: six("US", "BR"), Limits: rolling(30)},
			june, 2, 16, []int64{28}, []int64{2},
			[]string{"01T18:00 BR left_out 0 share", "02T18:00 BR left_out 0 share"}},
		{"it fits to the unit", Plan{Lanes: six("US", "BR"),
			Limits: []quota.Limit{sliding(32, 24*time.Hour), daily(t, 40, "UTC")}},
			june, 3, 24, []int64{32, 32}, []int64{0, 8}, nil},
		{"headroom is not for schedules", Plan{Lanes: six("US"),
			Limits: []quota.Limit{{Bucket: "default", Units: 16, Headroom: 5,
				Window: quota.Sliding(24 * time.Hour)}}},
			june, 3, 12, []int64{8}, []int64{3}, []string{
				"01T12:00 US left_out 0 share", "01T18:00 US left_out 0 share",
				"02T12:00 US left_out 0 share", "02T18:00 US left_out 0 share",
				"03T12:00 US left_out 0 share", "03T18:00 US left_out 0 share"}},
		{"a reservation counts until it lapses", Plan{Lanes: six("US"),
			Limits: rolling(16),
			Before: hold(10, "2026-06-01 12:00:00")},
			june, 1, 4, []int64{14}, []int64{2}, []string{"01T06:00 US left_out 0 share"}},
		{"a short window denies a crowd", Plan{Lanes: six("US", "BR"),
			Limits: []quota.Limit{sliding(6, time.Minute)}},
			june, 1, 8, []int64{6}, []int64{0}, []string{
				"01T00:00 BR partial 2 default 1m retry 01T00:01:00",
				"01T06:00 US partial 2 default 1m retry 01T06:01:00", // BR's chart is older now
				"01T12:00 BR partial 2 default 1m retry 01T12:01:00",
				"01T18:00 US partial 2 default 1m retry 01T18:01:00",
			}},
		{"a suspended bucket", Plan{Lanes: six("US"),
			Limits: rolling(16),
			Before: []Standing{{Name: "default",
				SuspendedUntil: clock(t, "2026-06-01 07:00:00")}}},
			june, 1, 4, []int64{8}, []int64{8}, []string{
				"01T00:00 US denied 0 suspended retry 01T07:00:00",
				"01T06:00 US denied 0 suspended retry 01T07:00:00",
			}},
		{"what the ledger holds leaves in its time",
			Plan{Lanes: six("US"), Limits: rolling(16),
				Before: []Standing{{Name: "default",
					Spent: []quota.Spent{{At: clock(t, "2026-05-31 11:00:00"), Units: 14}}}}},
			june, 1, 4, []int64{14}, []int64{2},
			[]string{"01T00:00 US left_out 0 share", "01T06:00 US left_out 0 share"}},
		// Two entries a microsecond apart leave one by one, and two pages fit one by one.
		{"to the microsecond", Plan{Lanes: lanes(t, "0 0 * * *", 1, 0, "US", "BR"),
			Limits: []quota.Limit{sliding(2, 5*time.Hour)},
			Before: []Standing{{Name: "default",
				Spent: []quota.Spent{{At: clock(t, "2026-05-31 19:00:00"), Units: 1},
					{At: clock(t, "2026-05-31 19:00:00.000001"), Units: 1}}}}},
			june, 1, 2, []int64{2}, []int64{0}, nil},
		// 2026-11-01 has 25 hours in Los Angeles, from 07:00Z to 08:00Z.
		{"the clock goes back: 25 runs in a day for 24",
			Plan{Lanes: lanes(t, "0 * * * *", 1, 0, "US"), Reset: los,
				Limits: []quota.Limit{{Bucket: "default", Units: 24, Window: los}}},
			"2026-11-01 07:00:00", 2, 49, []int64{24}, []int64{0},
			[]string{"02T07:00 US left_out 0 share"}},
		{"the clock goes forward: 23 runs", Plan{Lanes: lanes(t, "0 * * * *", 1, 0, "US"),
			Reset:  los,
			Limits: []quota.Limit{{Bucket: "default", Units: 24, Window: los}}},
			"2026-03-08 08:00:00", 1, 23, []int64{23}, []int64{1}, nil},
		// Paced evenly, 24 units a day and no slack: at n o'clock n units.
		{"a pace", Plan{Lanes: six("US"), Limits: []quota.Limit{daily(t, 24, "UTC")},
			Paces: []quota.Limit{{Bucket: "default", Units: 24, Window: utc, Pace: &quota.Pace{}}}},
			june, 1, 4, []int64{12, 12}, []int64{12, 0},
			[]string{"01T00:00 US denied 0 pace retry 01T01:00:00"}},
		{"short: half of the runs, evenly", Plan{Lanes: lanes(t, "0 */3 * * *", 4, 0, "US", "BR"),
			Limits: []quota.Limit{daily(t, 32, "UTC")}},
			june, 1, 16, []int64{32}, []int64{0}, []string{
				"01T03:00 US left_out 0 share", "01T03:00 BR left_out 0 share",
				"01T06:00 BR left_out 0 share", "01T09:00 US left_out 0 share",
				"01T12:00 BR left_out 0 share", "01T15:00 US left_out 0 share",
				"01T18:00 BR left_out 0 share", "01T21:00 US left_out 0 share",
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.plan.Price, c.plan.From = price, clock(t, c.from)
			if c.plan.Reset.Zone == nil {
				c.plan.Reset = utc
			}
			c.plan.To = c.plan.From
			for range c.days {
				_, c.plan.To = c.plan.Reset.Bounds(c.plan.To)
			}
			runs, r := played(c.plan)
			var lost []string
			for _, run := range runs {
				if run.Lost() {
					lost = append(lost, describe(run))
				}
			}
			if !slices.Equal(lost, c.want) {
				t.Errorf("lost\n%q\nwant\n%q", lost, c.want)
			}
			var peak, left []int64
			for _, u := range r.Windows {
				peak, left = append(peak, u.Peak), append(left, u.Margin)
			}
			if !slices.Equal(peak, c.peak) || !slices.Equal(left, c.left) {
				t.Errorf("peaks %v, margin %v; want %v, %v", peak, left, c.peak, c.left)
			}
			if r.Runs != c.runs || r.Lost() != int64(len(c.want)) || len(r.Days) != c.days ||
				r.Fits() != (len(c.want) == 0) {
				t.Errorf("%d runs, %d lost, %d days", r.Runs, r.Lost(), len(r.Days))
			}
			if r.First != nil && (len(c.want) == 0 || describe(*r.First) != c.want[0]) {
				t.Errorf("first %s", describe(*r.First))
			}
		})
	}
}

func describe(r Run) string {
	text := fmt.Sprintf("%s %s %s %d %s", r.At.Format("02T15:04"), r.Region, r.Outcome, r.Pages,
		r.Limit)
	if !r.RetryAt.IsZero() {
		text += " retry " + r.RetryAt.Format("02T15:04:05")
	}
	return text
}

// TestReport: a plan that starts in the middle of a day, with lanes that tick in the same minute.
func TestReport(t *testing.T) {
	p := Plan{Lanes: lanes(t, "0 */6 * * *", 2, 5*time.Minute, "US", "BR"), Price: price,
		Reset: day(t, "UTC"), Step: time.Hour,
		Limits: []quota.Limit{sliding(100, 24*time.Hour), daily(t, 100, "UTC")},
		From:   clock(t, "2026-06-01 12:00:00"), To: clock(t, "2026-06-03 00:00:00")}
	p.Lanes = append(p.Lanes, lanes(t, "5 12 * * *", 1, 0, "JP")...)
	p.Lanes = append(p.Lanes, share.Lane{Lane: p.Lanes[0].Lane, Pages: 1}) // in the same minute
	p.Lanes[3].Region = "GB"
	r := p.Execute()
	if len(r.Days) != 2 || !r.Days[0].Start.Equal(clock(t, "2026-06-01 00:00:00")) {
		t.Fatalf("%+v", r.Days)
	}
	d := r.Days[0]
	if d.Planned != 11 || d.Spent != 11 || d.Runs != 7 || d.Crowded != 3 || d.Ticks != 2 ||
		!d.Busiest.Equal(clock(t, "2026-06-01 12:00:00")) {
		t.Errorf("%+v", d)
	}
	if d := r.Days[1]; d.Planned != 21 || d.Windows[0].Peak != 21 || d.Windows[1].Peak != 21 ||
		d.Crowded != 5 {
		t.Errorf("%+v", d)
	}
	if len(r.Collisions) != 2 || r.Collisions[0].Times != 6 ||
		!slices.Equal(r.Collisions[0].Lanes, []string{"trending/US", "trending/GB"}) ||
		r.Collisions[1].Times != 2 ||
		!slices.Equal(r.Collisions[1].Lanes, []string{"trending/BR", "trending/JP"}) {
		t.Errorf("%+v", r.Collisions)
	}
	series := []int64{6, 6, 6, 6, 6, 6, 11, 11, 11, 11, 11, 11, 5, 5}
	if got := r.Series[1].Use; !slices.Equal(got[:14], series) || len(got) != 36 {
		t.Errorf("series %v", got)
	}
	if over := r.Over(0.20); len(over) != 2 || len(r.Over(0.21)) != 0 {
		t.Errorf("over 20 %%: %+v", over)
	}
}
