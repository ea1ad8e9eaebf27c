package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
	"quotabudget/internal/sim"
)

// scenario is a bucket at a random moment, from which nothing unscheduled was ever spent, and lanes
// that may be too many for it.
func scenario(t *testing.T, r *rapid.T) Bucket {
	at := clock(t, "2026-10-31 07:00:03").Add(time.Duration(rapid.Int64Range(0, 48*60).Draw(r, "now")) * time.Minute)
	b := Bucket{Name: "default", Price: 1, At: at, Reset: window(t, "day")}
	b.Price = rapid.SampledFrom([]int64{1, 1, 3}).Draw(r, "price")
	wanted := int64(0)
	for i, region := range []string{"US", "GB", "DE", "FR"}[:rapid.IntRange(1, 4).Draw(r, "lanes")] {
		l := lanes(t, rapid.SampledFrom([]string{"0 */3 * * *", "*/20 * * * *", "30 7,19 * * *", "5 * * * *", "*/10 9-17 * * *"}).Draw(r, "spec"), region)[0]
		l.Offset = time.Duration(rapid.SampledFrom([]int{0, 0, 5, 15, 600}).Draw(r, "offset")*(1+i)) * time.Second
		l.Pages = rapid.Int64Range(1, 6).Draw(r, "pages")
		l.Weight, l.Priority = rapid.Int64Range(0, 3).Draw(r, "weight"), rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(r, "priority")
		l.Floor = rapid.SampledFrom([]int64{0, 0, 20, 60}).Draw(r, "floor")
		wanted += l.Count(at, at.Add(24*time.Hour)) * l.Pages * b.Price
		b.Lanes = append(b.Lanes, l)
	}
	units := func(part int64) int64 {
		return max(1, wanted*part*rapid.Int64Range(20, 140).Draw(r, "per cent")/100/24)
	}
	for _, w := range []struct {
		text string
		part int64
	}{{"day", 24}, {"24h", 24}, {"12h", 12}, {"6h", 6}, {"hour", 2}, {"1h", 3}, {"1m", 8}} {
		if rapid.IntRange(0, 2).Draw(r, w.text) == 0 {
			b.Limits = append(b.Limits, limit(t, units(w.part), w.text))
		}
	}
	b.Limits = append(b.Limits, limit(t, units(24), "day"))
	if rapid.IntRange(0, 2).Draw(r, "another day") == 0 { // which begins before the reset
		other, err := quota.ParseWindow("day", "UTC")
		if err != nil {
			t.Fatal(err)
		}
		b.Limits = append(b.Limits, quota.Limit{Bucket: "default", Units: units(24), Window: other})
	}
	if rapid.IntRange(0, 3).Draw(r, "pace") == 0 {
		b.Paces = []quota.Limit{{Bucket: "default", Units: b.Limits[0].Units, Window: window(t, "day"), Pace: &quota.Pace{Slack: rapid.Int64Range(0, 20).Draw(r, "slack")}}}
	}
	for range rapid.IntRange(0, 60).Draw(r, "entries") {
		before := at.Truncate(time.Minute).Add(-time.Duration(rapid.Int64Range(1, 30*60).Draw(r, "minutes"))*time.Minute + 37*time.Second)
		l := b.Lanes[rapid.IntRange(0, len(b.Lanes)-1).Draw(r, "lane")]
		b.Spent = append(b.Spent, entry(l, before, rapid.Int64Range(1, 1+wanted/60).Draw(r, "units")))
	}
	b.Spent = join(b.Spent)
	for i, l := range b.Lanes { // as a plan begins, in the order of the list
		b.Spent = append(b.Spent, entry(l, at.Add(time.Duration(i-10)*100*time.Millisecond), 1))
	}
	if rapid.IntRange(0, 3).Draw(r, "reservation") == 0 {
		b.Reservations = []quota.Reservation{{Left: wanted / 10, Units: wanted / 10, CreatedAt: at,
			ExpiresAt: at.Add(time.Duration(rapid.Int64Range(1, 20*60).Draw(r, "ttl")) * time.Minute)}}
	}
	if rapid.IntRange(0, 5).Draw(r, "suspended") == 0 {
		b.SuspendedUntil = at.Add(3 * time.Hour)
	}
	return b
}

func entry(l share.Lane, at time.Time, units int64) quota.Spent {
	return quota.Spent{At: at, Units: units, Labels: quota.Labels{quota.LabelJob: l.Job, quota.LabelRegion: l.Region}}
}

// planned is the runs that a plan says are lost until a moment, one a line.
func planned(b Bucket, to time.Time) (lost []string) {
	p := plan.Plan{Lanes: b.Lanes, Price: []quota.Cost{{Bucket: b.Name, Units: b.Price}}, Limits: b.Limits, Paces: b.Paces,
		Reset: b.Reset, From: b.At, To: to,
		Before: []sim.Standing{{Bucket: b.Name, Spent: b.Spent, Reservations: b.Reservations, SuspendedUntil: b.SuspendedUntil}}}
	p.Watch = func(r plan.Run) bool {
		if r.Lost() {
			lost = append(lost, fmt.Sprintf("%s %s: %d of %d, share %v", r.At.Format(time.TimeOnly), r.ID(), r.Wanted-r.Pages, r.Wanted, r.Limit == sim.ShareName))
		}
		return true
	}
	p.Execute()
	return lost
}

// foretoldLost is the same of a forecast.
func foretoldLost(f Forecast) (lost []string) {
	for _, r := range f.LostRuns {
		lost = append(lost, fmt.Sprintf("%s %s: %d of %d, share %v", r.At.Format(time.TimeOnly), r.ID(), r.Lost, r.Pages, r.Limit == sim.ShareName))
	}
	return lost
}

// Where nothing is unscheduled, the forecast and the plan play one day: the same runs are lost, and
// those left out are the same.
func TestAsPlanned(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := scenario(t, r)
		f := Of(b)
		got, want := foretoldLost(f), planned(b, f.ResetAt)
		if !slices.Equal(got, want) {
			r.Fatalf("at %v, %s\nforetold:\n%s\nplanned:\n%s", b.At, f.Text(), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// crowd is two lanes of a page every ten seconds, for which there are 20 units a day.
func crowd(t *testing.T, text string) Bucket {
	b := Bucket{Name: "default", Price: 1, At: clock(t, "2026-11-21 08:30:02"), Reset: window(t, "day"), Limits: []quota.Limit{limit(t, 20, text)},
		Lanes: staggered(lanes(t, "@every 10s", "US", "GB"), 5*time.Second)}
	for i := range b.Lanes {
		b.Lanes[i].Pages, b.Lanes[i].Weight = 1, 1
	}
	return b
}

// Where the ticks are too many for points of their own, the runs are as many as a plan says, and
// spread as far over the day.
func TestCrowd(t *testing.T) {
	for text, far := range map[string]time.Duration{"day": 2 * time.Hour, "24h": 3 * time.Hour} {
		b := crowd(t, text)
		f := Of(b)
		lost := planned(b, f.ResetAt)
		if int(f.LeftOut.Runs) != len(lost) || f.LeftOut != f.Lost || f.Verdict != Lasts || f.Limit != sim.ShareName {
			t.Errorf("%s: %s; the plan leaves out %d", text, f.Text(), len(lost))
		}
		runs := ran(f.LostRuns, b, f.ResetAt)
		for i, at := range runs {
			if even := b.At.Add(f.ResetAt.Sub(b.At) * time.Duration(2*i+1) / time.Duration(2*len(runs))); at.Sub(even).Abs() > far {
				t.Errorf("%s: run %d is at %v, and on the even line at %v", text, i, at, even)
			}
		}
	}
}

// ran is when the runs were that lose nothing.
func ran(lost []LostRun, b Bucket, to time.Time) (at []time.Time) {
	gone := make(map[string]bool)
	for _, r := range lost {
		gone[r.ID()] = true
	}
	for _, l := range b.Lanes {
		for tick := range l.Ticks(b.At, to.Add(-time.Microsecond)) {
			if !gone[tick.ID()] {
				at = append(at, tick.At)
			}
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// Where two hundred days are played, shares stand for an hour; who is left out is as in a plan all
// the same.
func TestManyDaysAsPlanned(t *testing.T) {
	for _, text := range []string{"day", "24h"} {
		b := Bucket{Name: "default", Price: 1, At: clock(t, "2026-11-21 08:30:02"), Reset: window(t, "day"), Limits: []quota.Limit{limit(t, 400, text)},
			Lanes: lanes(t, "*/10 * * * *", "US", "GB", "DE"),
			Spent: []quota.Spent{{At: clock(t, "2026-11-19 10:00:00"), Units: 1}}} // unscheduled
		for i := range b.Lanes {
			b.Lanes[i].Weight = int64(1 + i)
		}
		f := Of(b)
		said, want := make(map[string]int), make(map[string]int)
		for _, r := range f.LostRuns {
			said[r.Region]++
		}
		for _, line := range planned(b, f.ResetAt) {
			want[strings.Split(line, "/")[1]]++
		}
		for region, n := range want {
			if d := said[region] - n; d < -1 || d > 1 {
				t.Errorf("%s: %s is left out %d times, in the plan %d times", text, region, said[region], n)
			}
		}
	}
}

// A day that has enough at first and is short later, because of what nobody has announced: what is
// left out is about what is missing then, with the hours in which there was enough counted as they
// were.
func TestShortLater(t *testing.T) {
	at := clock(t, "2026-11-21 08:00:02")
	b := Bucket{Name: "default", Price: 1, At: at, Reset: window(t, "day"), Limits: []quota.Limit{limit(t, 940, "day")}, Lanes: lanes(t, "*/20 * * * *", "US", "GB"),
		Spent: flow(at.Add(-8*time.Hour), at, 10*time.Minute, 3)} // 568 scheduled, and 432 besides
	for i := range b.Lanes {
		b.Lanes[i].Weight = 1
	}
	f := Of(b)
	missing := f.Scheduled.Units + int64(24*f.Rate.Likely) - 940
	// What nobody has announced loses some of them too, in the last hours.
	if d := f.LeftOut.Units - missing; f.LeftOut.Runs == 0 || d < -int64(4*f.Rate.Likely) || d > 20 {
		t.Errorf("%d units left out, about %d missing: %s", f.LeftOut.Units, missing, f.Text())
	}
	if f.LeftOut.Runs > 0 && f.LostRuns[0].At.Before(at.Add(2*time.Hour)) {
		t.Errorf("the first is left out at %v", f.LostRuns[0].At)
	}
}
