package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

const planned = `credentials:
  - name: one
    limits: [{bucket: default, units: 20, window: day}]
ingest: {regions: [US, GB], pages: 4, schedule: "0 */6 * * *", stagger: 0s}
`

// configured returns a configuration with a ledger whose clock the test sets, and the budget of its
// first credential.
func configured(t *testing.T, text string, now *time.Time) (Source, *quota.Budget) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "quota.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	cfg, err := config.Load(t.Context(), file, func(name string) string {
		return map[string]string{"QUOTA_STATE_DIR": dir}[name]
	})
	must(t, err)
	l, err := ledger.OpenFile(t.Context(), filepath.Join(dir, "ledger.db"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	l.Now = func() time.Time { return *now }
	src := Source{Config: cfg, Ledger: l}
	return src, src.budget(cfg.Credentials[0])
}

// TestPlanBeginsWithTheLedger: a plan begins at the ledger's time, with its usage. 8 of 20 units
// are spent, so the eight runs until the reset get 12 of the 32 pages that they want.
func TestPlanBeginsWithTheLedger(t *testing.T) {
	now := time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC) // an hour after the reset
	src, budget := configured(t, planned, &now)
	d, err := budget.Charge(t.Context(), quota.Call{Method: PageMethod, Count: 8})
	must(t, err)
	if !d.Allowed {
		t.Fatalf("%+v", d)
	}
	now = now.Add(30 * time.Minute)
	got, err := src.Plan(t.Context(), PlanQuery{Days: 1})
	must(t, err)
	out := NewPlan(got)
	if !time.Time(out.From).Equal(now) || out.To.String() != "2026-07-02T07:00:00.000000Z" {
		t.Errorf("from %s to %s", out.From, out.To)
	}
	if out.Runs != 8 || out.Wanted != 32 || out.Pages != 12 || out.Fits ||
		out.Windows[0].Peak != 20 || *out.Windows[0].Percent != 100 ||
		len(out.Lost) != int(out.Partial+out.Denied+out.LeftOut) || out.First == nil {
		t.Errorf("%+v", out)
	}
	now = now.Add(24 * time.Hour) // the 8 units belong to yesterday
	got, err = src.Plan(t.Context(), PlanQuery{Days: 1})
	must(t, err)
	if pages := got.Report.Pages; pages <= 12 || got.Report.Windows[0].Peak != pages {
		t.Errorf("%d pages of a new day; %+v", pages, got.Report.Windows)
	}
}

// TestLose: lost runs beyond the bound are counted.
func TestLose(t *testing.T) {
	o := Planned{Share: math.Inf(1)}
	for range maxLost + 3 {
		o.Lose(plan.Run{})
	}
	if out := NewPlan(o); len(out.Lost) != maxLost || out.More != 3 {
		t.Errorf("%d listed, %d more", len(out.Lost), out.More)
	}
}

func TestPeaks(t *testing.T) {
	for _, c := range []struct {
		use     []int64
		columns int
		want    []float64
	}{
		{[]int64{1, 9, 2, 3, 4}, 2, []float64{9, 4}},
		{[]int64{1, 2}, 5, []float64{1, 1, 1, 2, 2}},
		{[]int64{1, 2, 3}, 3, []float64{1, 2, 3}},
		{nil, 2, nil},
	} {
		if got := Peaks(c.use, c.columns); !slices.Equal(got, c.want) {
			t.Errorf("%d in %d columns: %v, want %v", c.use, c.columns, got, c.want)
		}
	}
}

const weekly = `credentials:
  - name: one
    limits: [{bucket: default, units: 9500, window: day}]
jobs:
  - {name: shell, command: [shell.sh], schedule: "15 * * * *", settle: exit,
     cost: {bucket: default, units: 3}}
  - {name: python, elsewhere: /etc/crontab, schedule: "*/30 * * * *", settle: report,
     cost: {bucket: default, units: 40}}
  - {name: node, elsewhere: /etc/crontab, schedule: "5 6-22 * * *", settle: proxy,
     cost: {learned: true, bucket: default, units: 100}}
  - {name: fresh, elsewhere: /etc/crontab, schedule: "0 12 * * *", settle: report,
     cost: {bucket: default, units: 7}}
`

// took returns the units that a run of a job takes, which are unknown beforehand.
func (w *week) took(name string) int64 {
	switch name {
	case "shell":
		return 3
	case "python":
		return int64(max(1, w.random.NormFloat64()*2+5)) // of 40
	case "node":
		return 20 + w.random.Int64N(20)
	}
	return 0
}

type week struct {
	*testing.T
	now    time.Time
	src    Source
	budget *quota.Budget
	random *rand.Rand
}

// play runs the jobs from now until a moment, and returns the units they took.
func (w *week) play(until time.Time) (units int64) {
	for ; w.now.Before(until); w.now = w.now.Add(time.Minute) {
		for _, j := range w.src.Config.Jobs {
			l, err := j.Lane(w.budget)
			must(w.T, err)
			if j.Name == "fresh" || l.Count(w.now.Add(-time.Nanosecond), w.now) == 0 {
				continue
			}
			b := *w.budget
			b.Labels = quota.Labels{quota.LabelJob: j.Name,
				quota.LabelRun: fmt.Sprint(j.Name, "/", w.now.Format(time.RFC3339))}
			d, err := b.Hold(w.Context(), quota.ReserveRequest{TTL: time.Hour,
				Call: quota.Call{Costs: j.Cost.Costs}})
			must(w.T, err)
			took := w.took(j.Name)
			_, err = b.Settle(w.Context(), d.Reservation, quota.Call{
				Costs: []quota.Cost{{Bucket: quota.DefaultBucket, Units: took}}})
			must(w.T, err)
			units += took
		}
	}
	return units
}

// TestPlan_LearnsFromAWeek: after a week in which jobs took much less than they held, the plan and
// the forecast of the next day are within 5 % of the units the jobs then take.
func TestPlan_LearnsFromAWeek(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 7, 1, 7, 0, 0, 0, time.UTC) // the reset
	w := &week{T: t, now: begin, random: rand.New(rand.NewPCG(1, 2))}
	w.src, w.budget = configured(t, weekly, &w.now)
	untaught, err := w.src.Plan(t.Context(), PlanQuery{Days: 1})
	must(t, err)
	if got := untaught.Report.Days[0].Planned; got != 24*3+48*40+17*100+7 {
		t.Errorf("without a log, %d units are planned, want the units held", got)
	}
	w.play(begin.AddDate(0, 0, 7))
	got, err := w.src.Plan(t.Context(), PlanQuery{Days: 1})
	must(t, err)
	forecasts, err := w.src.Forecasts(t.Context(), quota.DefaultBucket)
	must(t, err)
	truth := w.play(begin.AddDate(0, 0, 8))
	within := func(what string, units int64) {
		t.Logf("%s %d, took %d", what, units, truth)
		if off := float64(units-7)/float64(truth) - 1; math.Abs(off) > 0.05 {
			t.Errorf("%s %d units, and %d were taken: %.1f %% off", what, units, truth, 100*off)
		}
	}
	within("planned", got.Report.Days[0].Planned)
	within("forecast", forecasts[0].Scheduled.Units)
	out := NewPlan(got)
	for i, want := range []int64{168, 336, 119, 0} {
		if r := out.Regions[i]; r.Learned != want || (r.Took["default"] > 0) != (want > 0) {
			t.Errorf("%s is learned from %d runs, want %d", r.Job, r.Learned, want)
		}
	}
}
