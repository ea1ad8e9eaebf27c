package plan

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// TestExecute_Shares: what is left out is what package share says of the day as it stands then, put together anew each time.
func TestExecute_Shares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		known := Standing{Bucket: quota.DefaultBucket}
		for i := range rapid.IntRange(0, 5).Draw(t, "entries before") {
			known.Entries = append(known.Entries, quota.Entry{At: p.From.Add(time.Duration(i-6) * 3 * time.Hour), Units: rapid.Int64Range(1, 15).Draw(t, "units before"),
				Labels: quota.Labels{quota.LabelRegion: rapid.SampledFrom(eight[:3]).Draw(t, "by"), quota.LabelJob: rapid.SampledFrom([]string{"trending", "other"}).Draw(t, "job")}})
		}
		known.Reservations = []quota.Reservation{{Left: rapid.Int64Range(0, 9).Draw(t, "held"), ExpiresAt: p.From.Add(7 * time.Hour)}}
		p.Before = []Standing{known}
		runs, _ := played(p)
		log := known.Entries
		for i, run := range runs {
			d, mine := standing(p, log, runs[:i], run)
			runs := len(d.Lanes) == 0 || d.Admit(mine).Run
			if runs == (run.Outcome == LeftOut) {
				t.Fatalf("%v: of %+v: it runs: %v", run, d, runs)
			}
			for range run.Pages {
				log = append(log, quota.Entry{At: run.At, Units: 1, Labels: quota.Labels{quota.LabelRegion: run.Region, quota.LabelJob: run.Job}})
			}
		}
	})
}

// standing is the day before a run, of the daily limit that leaves least.
func standing(p Plan, log []quota.Entry, before []Run, run Run) (d share.Day, mine int) {
	var held int64
	if r := p.Before[0].Reservations[0]; r.ExpiresAt.After(run.At) {
		held = r.Left
	}
	for _, l := range p.Limits {
		if l.Window.Calendar != "day" {
			continue
		}
		start, end := l.Window.Bounds(run.At)
		left := l.Cap(false) - held
		for _, e := range log {
			if !e.At.Before(start) {
				left -= e.Units
			}
		}
		if left = max(left, 0); len(d.Lanes) > 0 && left >= d.Left {
			continue
		}
		d = share.Day{Left: left}
		for i, lane := range p.Lanes {
			if lane.Region == run.Region {
				mine = i
			}
			s := share.Lane{Region: lane.Region, Weight: lane.Weight, Floor: lane.Floor, Cost: lane.Pages}
			for tick := range lane.Ticks(start.Add(-time.Second), end.Add(-time.Second)) {
				s.Ticks++
				if !tick.At.Before(p.From) {
					s.Remaining++
				}
			}
			for _, r := range before {
				if r.Region == lane.Region && !r.At.Before(start) {
					s.Remaining--
				}
			}
			for _, e := range log {
				if !e.At.Before(start) && e.Labels[quota.LabelRegion] == lane.Region && e.Labels[quota.LabelJob] == lane.Job {
					s.Spent += e.Units
				}
			}
			d.Lanes = append(d.Lanes, s)
		}
	}
	return d, mine
}
