package daemon

import (
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/metrics"
	"quotabudget/internal/quota"
)

// askTime is how long ledger and catalogue may take to say how things stand.
const askTime = 2 * time.Second

// register adds to the registry what is asked of ledger and catalogue when the metrics are read.
func (d *Daemon) register() {
	for what, o := range d.outages() {
		d.Metrics.Registry.MustRegister(o.gauge(what))
	}
	d.Metrics.Registry.MustRegister(
		metrics.NewBudget(func() *quota.Budget {
			if w := d.now.Load(); w != nil {
				return w.Sweep.Budget
			}
			return nil
		}, d.Log),
		metrics.NewCharts(func() (*catalog.Catalog, []string) {
			if w := d.now.Load(); w != nil {
				return w.Sweep.Catalog, w.regions()
			}
			return nil, nil
		}, d.Log))
}

func (w *Work) regions() []string {
	names := make([]string, len(w.Lanes))
	for i, l := range w.Lanes {
		names[i] = l.Region
	}
	return names
}
