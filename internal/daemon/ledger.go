package daemon

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/ledger"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
)

// Spending reads what was spent.
type Spending interface {
	plan.Ledger
	Between(ctx context.Context, credential, bucket string, from, to time.Time) (int64, error)
}

// Observe counts and times an operation of the daemon's ledger.
func (m *Metrics) Observe(op ledger.Operation) {
	m.ledgerTime.WithLabelValues(op.Name).Observe(op.Took.Seconds())
	if fromLedger(op.Err) {
		m.ledgerFailures.WithLabelValues(op.Name).Inc()
	}
	d := op.Decision
	if op.Err != nil {
		return
	}
	switch {
	case op.Name == "cancel":
		addUnits(m.cancelled, op)
	case d.Replayed:
	case op.Name == "settle":
		addUnits(m.spent, op)
	case op.Name != "charge" && op.Name != "reserve":
	case !d.Allowed:
		m.denials.WithLabelValues(op.Credential, d.LimitKind()).Inc()
	case op.Name == "charge": // reserved units are counted when they are settled
		addUnits(m.spent, op)
		if d.Observed {
			m.observed.WithLabelValues(op.Credential, d.LimitKind()).Inc()
		}
	}
}

func addUnits(vec *prometheus.CounterVec, op ledger.Operation) {
	for bucket, units := range quota.UnlabelledUnits(op.Decision.Units) {
		vec.WithLabelValues(op.Credential, bucket, op.Labels[quota.LabelMethod],
			op.Labels[quota.LabelRegion]).Add(float64(units))
	}
}
