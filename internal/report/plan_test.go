package report

import (
	"math"
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

// TestPlanBeginsWithTheLedger: a plan begins at the ledger's time and usage. 8 of 20 units are
// spent, so the eight runs until the reset, which want 32 pages, get 12.
func TestPlanBeginsWithTheLedger(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "quota.yaml")
	must(t, os.WriteFile(file, []byte(planned), 0o600))
	cfg, err := config.Load(t.Context(), file, func(name string) string {
		return map[string]string{"QUOTA_STATE_DIR": dir}[name]
	})
	must(t, err)
	l, err := ledger.OpenFile(t.Context(), filepath.Join(dir, "ledger.db"))
	must(t, err)
	defer l.Close()
	now := time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC) // an hour after the reset
	l.Now = func() time.Time { return now }
	cred := cfg.Credentials[0]
	d, err := cred.Budget(l, cfg.Costs, nil).Charge(t.Context(),
		quota.Call{Method: PageMethod, Count: 8})
	must(t, err)
	if !d.Allowed {
		t.Fatalf("%+v", d)
	}
	now = now.Add(30 * time.Minute)
	got, err := Source{Config: cfg, Ledger: l}.Plan(t.Context(), PlanQuery{Days: 1})
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
	got, err = Source{Config: cfg, Ledger: l}.Plan(t.Context(), PlanQuery{Days: 1})
	must(t, err)
	if pages := got.Report.Pages; pages <= 12 || got.Report.Windows[0].Peak != pages {
		t.Errorf("%d pages of a new day; %+v", pages, got.Report.Windows)
	}
}

// TestLose: lost runs beyond the bound are counted.
func TestLose(t *testing.T) {
	o := Planned{Share: math.Inf(1)}
	for range mostLost + 3 {
		o.Lose(plan.Run{})
	}
	if out := NewPlan(o); len(out.Lost) != mostLost || out.More != 3 {
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
