package daemon

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves /healthz, /readyz and /metrics. Call it once: it registers metrics that are read
// at each scrape.
func (d *Daemon) Handler() http.Handler {
	d.register()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "alive")
	})
	mux.HandleFunc("GET /readyz", d.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.Metrics.Registry, promhttp.HandlerOpts{
		Registry: d.Metrics.Registry, ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: 4, EnableOpenMetrics: true,
	}))
	return mux
}

// ready reports whether a tick could run: ledger and catalogue are available.
func (d *Daemon) ready(w http.ResponseWriter, r *http.Request) {
	var reasons []string
	c := d.inForce.Load()
	if c == nil {
		http.Error(w, "the lanes do not run yet", http.StatusServiceUnavailable)
		return
	}
	if err := withTimeout(r.Context(), c.askLedger); err != nil {
		reasons = append(reasons, "ledger: "+err.Error())
	} else if _, why := d.ledger.away(); why != nil {
		reasons = append(reasons, "ledger: ticks cannot be claimed: "+why.Error())
	}
	if err := withTimeout(r.Context(), func(ctx context.Context) error {
		return d.stores(ctx, c)
	}); err != nil {
		reasons = append(reasons, "catalogue: "+strings.TrimPrefix(err.Error(), "catalogue: "))
	}
	if len(reasons) > 0 {
		http.Error(w, strings.Join(reasons, "\n"), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
	if since, why := d.upstream.away(); why != nil {
		fmt.Fprintf(w, "ticks wait: the upstream has not answered since %s\n",
			since.UTC().Format(time.RFC3339))
	}
}

// stores returns why the catalogue cannot be read or written. It tests writing only after a known
// failure, to show a recovery before the next tick.
func (d *Daemon) stores(ctx context.Context, c *Config) error {
	sweep, regions := c.sweep()
	if sweep == nil {
		return nil
	}
	if _, err := sweep.Catalog.Staleness(ctx, regions); err != nil {
		return err
	}
	_, why := d.catalogue.away()
	if why == nil {
		return nil
	}
	if sweep.Catalog.CheckRoom(ctx) != nil {
		return why // return the lanes' error, because err may be only a timeout
	}
	d.catalogue.works()
	return nil
}

// withTimeout calls ledger or catalogue, for at most two seconds.
func withTimeout(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return ask(ctx)
}

// askLedger reads the usage of the credentials that the lanes spend from.
func (c *Config) askLedger(ctx context.Context) error {
	for _, p := range c.policies() {
		if _, err := p.Budget.Usage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sweep returns the work and the regions of the sweeping lanes; nil if there are none.
func (c *Config) sweep() (sweep *Sweep, regions []string) {
	for _, l := range c.Lanes {
		if s, ok := l.Work.(*Sweep); ok {
			sweep, regions = s, append(regions, l.Region)
		}
	}
	return sweep, regions
}
