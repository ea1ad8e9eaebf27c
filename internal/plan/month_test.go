package plan

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// dollars formats millionths of a dollar.
func dollars(units int64) string { return fmt.Sprintf("$%.2f", float64(units)/1e6) }

// spending is money spent by people and a nightly batch at random moments, half as much at
// weekends: about perDay a day.
func spending(seed uint64, from, to time.Time, perDay float64) (all []quota.Spent) {
	r := rand.New(rand.NewPCG(seed, 7))
	for at := from; at.Before(to); at = at.Add(time.Duration(r.ExpFloat64() * float64(time.Hour))) {
		units := perDay / 24 * (0.5 + r.Float64())
		if d := at.Weekday(); d == time.Saturday || d == time.Sunday {
			units /= 2
		}
		all = append(all, quota.Spent{At: at, Units: int64(units), Charges: 1,
			Labels: quota.Labels{quota.LabelMethod: "messages.create"}})
	}
	return all
}

// month returns a bucket of money without a schedule, under a limit of a calendar month in
// Berlin.
func month(t *testing.T, seed uint64, from, now string, perDay float64, limit int64) Bucket {
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	at := clock(t, now)
	return Bucket{Standing: Standing{Name: "money", Spent: spending(seed, clock(t, from), at,
		perDay)}, At: at, Amount: dollars,
		Limits: []quota.Limit{{Bucket: "money", Units: limit,
			Window: quota.Window{Calendar: "month", Zone: berlin}}}}
}

// TestMonth: a month's money is forecast from past spending alone, and the month continues like
// the last weeks.
func TestMonth(t *testing.T) {
	for name, c := range map[string]struct {
		from, now, reset string
		dollars          int64 // of the limit
		dry              int   // day of the month when it runs dry, ± 2; 0: it lasts
	}{
		// About 100 dollars are spent in 30 days, 86 because of the weekends.
		"31 days, an hour more": {"2026-10-01 00:00:00", "2026-10-15 12:00:00",
			"2026-10-31 23:00:00", 73, 26},
		"30 days":         {"2026-11-01 00:00:00", "2026-11-15 12:00:00", "2026-11-30 23:00:00", 73, 26},
		"30 days, enough": {"2026-11-01 00:00:00", "2026-11-15 12:00:00", "2026-11-30 23:00:00", 110, 0},
		"the year's end":  {"2026-12-01 00:00:00", "2026-12-20 12:00:00", "2026-12-31 23:00:00", 73, 26},
		"February":        {"2027-02-01 00:00:00", "2027-02-15 12:00:00", "2027-02-28 23:00:00", 62, 22},
		"March, an hour less": {"2027-03-01 00:00:00", "2027-03-20 12:00:00", "2027-03-31 22:00:00",
			73, 26},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				b := month(t, seed, c.from, c.now, 100e6/30, c.dollars*1e6)
				f := ForecastOf(b)
				if want := clock(t, c.reset); !f.ResetAt.Equal(want) {
					t.Errorf("reset at %v, not %v", f.ResetAt, want)
				}
				if c.dry == 0 {
					if f.Verdict != Lasts || f.Missing != 0 {
						t.Errorf("%s, %+v", f.Text(), f)
					}
					continue
				}
				if d := f.DryAt.Day(); f.Verdict != RunsDry || d < c.dry-2 || d > c.dry+2 {
					t.Errorf("%d: %s", seed, f.Text())
				}
				spent := int64(0)
				for _, s := range b.Spent {
					if s.At.After(b.Limits[0].Since(b.At, time.Time{})) {
						spent += s.Units
					}
				}
				if f.Remaining != c.dollars*1e6-spent {
					t.Errorf("%d remain", f.Remaining)
				}
				rate := f.Rate.Likely * f.ResetAt.Sub(f.At).Hours() // all requests are counted
				off := float64(f.Missing) - (rate - float64(f.Remaining))
				if off < -100 || off > 100 {
					t.Errorf("%s: at %s an hour, %s remain", f.Text(),
						dollars(int64(f.Rate.Likely)), dollars(f.Remaining))
				}
			}
		})
	}
}

func TestMonth_Text(t *testing.T) {
	b := month(t, 1, "2026-11-01 00:00:00", "2026-11-15 12:00:00", 100e6/30, 73e6)
	f := ForecastOf(b)
	want := `^the month's money lasts to the 2\d(st|nd|rd|th) \((the 2\d(st|nd|rd|th) (to the ` +
		`\d+(st|nd|rd|th)|at the earliest, or not at all))\); ` +
		`at this rate \$\d+\.\d\d short; to avoid it, spend at most \$\d\.\d\d ` +
		`a day \(see quotactl log --by job\)$`
	if text := f.Text(); !regexp.MustCompile(want).MatchString(text) {
		t.Error(text)
	}
	young := b
	young.Spent = b.Spent[len(b.Spent)-40:] // about 40 hours
	const unsure = "; too little history to rely on it: a day"
	if text := ForecastOf(young).Text(); !strings.HasSuffix(text, unsure) {
		t.Error(text)
	}
	daily := b
	daily.Limits = append(slices.Clone(b.Limits), quota.Limit{Bucket: "money", Units: 3e6,
		Window: quota.Sliding(24 * time.Hour)})
	want = `^money runs dry at [^;]*, by the limit money 24h; ` +
		`at this rate the month is \$\d+\.\d\d short`
	if text := ForecastOf(daily).Text(); !regexp.MustCompile(want).MatchString(text) {
		t.Error(text)
	}
	b.Limits[0].Units = 200e6
	if text := ForecastOf(b).Text(); text != "the month's money lasts to the reset" {
		t.Error(text)
	}
	b.Limits[0].Window.Calendar, b.Limits[0].Units = "week", 18e6
	b.At = clock(t, "2026-11-12 12:00:00")
	b.Spent = spending(1, clock(t, "2026-11-01 00:00:00"), b.At, 100e6/30)
	want = `^the week's money lasts to (Saturday|Sunday) \(.*\); at this rate \$\d\.\d\d short`
	if text := ForecastOf(b).Text(); !regexp.MustCompile(want).MatchString(text) {
		t.Error(text)
	}
}

// TestDaylight: the day in Los Angeles has 23 hours on 8 March and 25 on 1 November. Its runs and
// its reset follow the wall clock: from 01:00 to 23:00; 02:00 becomes 03:00 when it does not
// exist, and a repeated 01:00 counts once.
func TestDaylight(t *testing.T) {
	for _, test := range []struct {
		start string
		hours float64
		runs  int64
	}{
		{"2026-03-07 08:00:00", 24, 23}, {"2026-03-08 08:00:00", 23, 22},
		{"2026-11-01 07:00:00", 25, 23},
	} {
		b := bucketAt(t, test.start, "1000 day", "CRON_TZ=America/Los_Angeles 0 * * * * BR")
		f := ForecastOf(b)
		if f.ResetAt.Sub(b.At).Hours() != test.hours || f.Scheduled.Runs != test.runs ||
			f.Verdict != Lasts {
			t.Errorf("%v h, %d runs: %s", f.ResetAt.Sub(b.At).Hours(), f.Scheduled.Runs, f.Text())
		}
		// 40 an hour and 4 for each run: the last run of the day gets the units that the earlier
		// hours left.
		b.Spent = flow(b.At.Add(-24*time.Hour), b.At.Add(-time.Second), 15*time.Minute, 10)
		b.Limits[0].Units = int64(40*(test.hours-2)) + 4*(test.runs-2)
		f = ForecastOf(b)
		if before := f.ResetAt.Sub(f.DryAt); f.Verdict != RunsDry || before < 20*time.Minute ||
			before > 5*time.Hour {
			t.Errorf("%v: %s", test.start, f.Text())
		}
	}
}

// TestSlidingOnTheLongDay: on the day of 25 hours, the spending of its first hour leaves a
// sliding window an hour before the reset.
func TestSlidingOnTheLongDay(t *testing.T) {
	for limits, want := range map[string]string{
		"100 24h": "default is exhausted (default 24h) until 2026-11-02 07:30Z",
		"100 day": "default is exhausted (default day America/Los_Angeles) " +
			"until 2026-11-02 08:00Z: BR will miss 1 run at 2026-11-02 07:45Z",
	} {
		b := bucketAt(t, "2026-11-01 13:00:00", limits, "45 7 * * * BR",
			spent(clock(t, "2026-11-01 07:30:00"), 100))
		if got := ForecastOf(b).Text(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
