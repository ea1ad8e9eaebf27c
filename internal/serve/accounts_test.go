package serve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

const budgets = `
ledger: sqlite://%[1]s/ledger.db
catalog: sqlite://%[1]s/catalog.db
credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    limits:
      - {bucket: default, units: %[2]d, headroom: 500, window: day}
      - {bucket: default, units: %[2]d, headroom: 500, window: 24h}
      - {bucket: search_list, units: 100, headroom: 5, window: day}
ingest:
  regions: [US, GB, DE, FR, IN, BR, AU, CA]
  schedule: "0 */3 * * *"
  stagger: 5m
`

// budget is a ledger whose clock the test sets, and who charges it.
type budget struct {
	*quota.Budget
	ledger *ledger.Ledger
	t      testing.TB
	now    time.Time
}

// newBudget returns a server with budgets of so many units a day.
func newBudget(t *testing.T, units int) (*env, *budget) {
	t.Helper()
	cfg, l := configured(t, fmt.Sprintf(budgets, t.TempDir(), units))
	b := &budget{ledger: l, t: t}
	l.Now = func() time.Time {
		if b.now.IsZero() {
			return time.Now()
		}
		return b.now
	}
	s := newEnv(t, func(s *Server) {
		b.Budget = cfg.Credentials[0].Budget(l, cfg.Costs, s.Log)
		s.Source = func() report.Source { return report.Source{Config: cfg, Ledger: l} }
	})
	return s, b
}

// charge charges a method at a moment, labels as "job=trending region=US".
func (b *budget) charge(at time.Time, method string, n int64, labels string) {
	b.t.Helper()
	b.now = at
	defer func() { b.now = time.Time{} }()
	l := quota.Labels{}
	for _, label := range strings.Fields(labels) {
		name, value, _ := strings.Cut(label, "=")
		l[name] = value
	}
	d, err := b.Charge(b.t.Context(), quota.Call{Method: method, Count: n, Labels: l})
	must(b.t, err)
	if !d.Allowed {
		b.t.Fatalf("%d of %s at %s: denied by %s", n, method, at, d.Limit)
	}
}
