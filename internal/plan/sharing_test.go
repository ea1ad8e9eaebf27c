package plan

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
	share "quotabudget/internal/shareold"
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

// stretch is what a limit leaves from some moment to another, and the lanes' ticks in it.
type stretch struct {
	share.Day
	share.Stretch
}

// standing is the day before a run, of the limit that is shortest of units, put together from the log alone.
func standing(p Plan, log []quota.Entry, before []Run, run Run) (d share.Day, mine int) {
	var calendar, sliding *stretch
	free := int64(math.MaxInt64)
	dayStart, _ := p.Reset.Bounds(run.At)
	for _, l := range p.Limits {
		switch {
		case l.Window.Calendar == "day":
			start, end := l.Window.Bounds(run.At)
			s := between(p, l, log, run, start.Add(-time.Microsecond))
			free = min(free, s.Stretch.Left)
			s.count(p, before, start, end.Add(-time.Microsecond))
			if calendar == nil || s.Shorter(calendar.Stretch) {
				calendar = &s
			}
		case l.Window.Length >= share.Shortest:
			var least *stretch
			free = min(free, between(p, l, log, run, run.At.Add(share.Soon-l.Window.Length)).Stretch.Left)
			for i := 1; i <= share.Horizons; i++ {
				until := moment(share.Horizon(run.At.UnixMicro(), l.Window.Length.Microseconds(), i))
				s := between(p, l, log, run, until.Add(-l.Window.Length))
				s.Slides = true
				s.count(p, before, dayStart, until)
				s.number(p, before, run)
				if least == nil || s.Shorter(least.Stretch) {
					least = &s
				}
				if i == share.Horizons && s.Wanted <= between(p, l, log, run, run.At.Add(-l.Window.Length)).Stretch.Left {
					least = nil
				}
			}
			if least != nil && (sliding == nil || least.Shorter(sliding.Stretch)) {
				sliding = least
			}
		}
	}
	for i, lane := range p.Lanes {
		if lane.Region == run.Region {
			mine = i
		}
	}
	switch {
	case calendar == nil && sliding == nil:
		return share.Day{}, mine
	case calendar == nil, sliding != nil && sliding.Overrules(calendar.Stretch):
		d = sliding.Day
	default:
		d = calendar.Day
	}
	d.Later = max(0, d.Left-free)
	return d, mine
}

// between is what a limit leaves at until, of which all after from is in the window, and what each lane has spent since.
func between(p Plan, l quota.Limit, log []quota.Entry, run Run, from time.Time) (s stretch) {
	left := l.Cap(false)
	if r := p.Before[0].Reservations[0]; r.ExpiresAt.After(run.At) {
		left -= r.Left
	}
	for _, lane := range p.Lanes {
		s.Lanes = append(s.Lanes, share.Lane{Region: lane.Region, Weight: lane.Weight, Priority: lane.Priority, Floor: lane.Floor, Cost: lane.Pages})
	}
	for _, e := range log {
		if !e.At.After(from) {
			continue
		}
		left -= e.Units
		for i, lane := range p.Lanes {
			if e.Labels[quota.LabelRegion] == lane.Region && e.Labels[quota.LabelJob] == lane.Job {
				s.Lanes[i].Spent += e.Units
			}
		}
	}
	s.Stretch.Left = max(left, 0)
	s.Day.Left = s.Stretch.Left
	return s
}

// count fills in the ticks from the start of a day to until, and those of them that have not had their run.
func (s *stretch) count(p Plan, before []Run, start, until time.Time) {
	begun := start
	if p.From.After(begun) {
		begun = p.From
	}
	for i, lane := range p.Lanes {
		l := &s.Lanes[i]
		l.Ticks, l.Remaining = lane.Count(start.Add(-time.Second), until), lane.Count(begun.Add(-time.Second), until)
		for _, r := range before {
			if r.Region == lane.Region && !r.At.Before(start) {
				l.Remaining--
			}
		}
		s.Wanted += l.Remaining * l.Cost
	}
}

// number numbers the ticks on from day to day, as windows that slide have them.
func (s *stretch) number(p Plan, before []Run, run Run) {
	start, end := p.Reset.Bounds(run.At)
	for i, lane := range p.Lanes {
		l, had := &s.Lanes[i], int64(0)
		if p.From.After(start) {
			had = lane.Count(start.Add(-time.Second), p.From.Add(-time.Second))
		}
		for _, r := range before {
			if r.Region == lane.Region && !r.At.Before(start) {
				had++
			}
		}
		l.Ticks, l.Number = l.Remaining, share.Number(start, lane.Count(start.Add(-time.Second), end.Add(-time.Second)), had)
	}
}

// TestExecute_DefaultLimits: any 24 hours and the day at once, for half of what the schedule wants, from the middle of a day on: from
// then on every region is served in every stretch of two hours, by its weight, and nothing is denied in mid-chart. Shared by
// the calendar alone, the mornings go without.
func TestExecute_DefaultLimits(t *testing.T) {
	los := day(t, "America/Los_Angeles")
	p := Plan{Price: price, Reset: los, From: at(t, "2026-06-01T19:00:00Z"), To: at(t, "2026-06-05T07:00:00Z"),
		Lanes: lanes(t, "*/10 * * * *", 4, time.Minute, "US", "GB", "DE", "FR"), Limits: []quota.Limit{sliding(1152, 24*time.Hour), {Bucket: "default", Units: 1152, Window: los}}}
	p.Lanes[0].Weight = 2
	runs, r := played(p)
	if r.Denied+r.Partial != 0 {
		t.Errorf("%d denied, %d cut off", r.Denied, r.Partial)
	}
	pages := make(map[string]int64)
	last := make(map[string]time.Time)
	for _, run := range runs {
		if run.Outcome == LeftOut {
			continue
		}
		if before, ok := last[run.Region]; ok && run.At.Sub(before) > 2*time.Hour {
			t.Errorf("%s has no run from %v to %v", run.Region, before, run.At)
		}
		last[run.Region] = run.At
		pages[run.Region] += run.Pages
	}
	if us, de := pages["US"], pages["DE"]; us < 19*de/10 || us > 21*de/10 {
		t.Errorf("US, of weight 2, has %d pages and DE %d", us, de)
	}
	for _, d := range r.Days[1:] {
		if d.Pages < 1152*95/100 {
			t.Errorf("only %d units are used in the day from %v", d.Pages, d.Start)
		}
	}
}
