package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler answers /healthz, /readyz and /metrics for the daemon. It is made once, and adds to the
// registry of Metrics what is asked when they are read.
func (d *Daemon) Handler() http.Handler {
	d.register()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "alive")
	})
	mux.HandleFunc("GET /readyz", d.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.Metrics.Registry, promhttp.HandlerOpts{
		Registry: d.Metrics.Registry, ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
	}))
	return mux
}

// ready answers whether a tick could run: ledger and catalogue are there.
func (d *Daemon) ready(w http.ResponseWriter, r *http.Request) {
	var reasons []string
	c := d.inForce.Load()
	if c == nil {
		http.Error(w, "the lanes do not run yet", http.StatusServiceUnavailable)
		return
	}
	if err := asked(r.Context(), c.askLedger); err != nil {
		reasons = append(reasons, "ledger: "+err.Error())
	} else if _, why := d.ledger.away(); why != nil {
		reasons = append(reasons, "ledger: ticks cannot be claimed: "+why.Error())
	}
	if err := asked(r.Context(), func(ctx context.Context) error {
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

// stores reports why the catalogue could not be read, or store a page. It is written to only while
// it is known to have failed: its recovery is to show before the next tick does.
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
		return why // that of the lanes: this one may be that it took too long
	}
	d.catalogue.works()
	return nil
}

// asked asks ledger or catalogue, for two seconds at most.
func asked(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return ask(ctx)
}

// askLedger asks for what is left of what the lanes spend from.
func (c *Config) askLedger(ctx context.Context) error {
	for _, name := range c.credentials() {
		p, _ := c.policyOf(name)
		if _, err := p.Budget.Usage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sweep is the work of the lanes that sweep, and their regions; nil where none does.
func (c *Config) sweep() (sweep *Sweep, regions []string) {
	for _, l := range c.Lanes {
		if s, ok := l.Work.(*Sweep); ok {
			sweep, regions = s, append(regions, l.Region)
		}
	}
	return sweep, regions
}

// Serve answers on the listener until ctx ends, and closes it.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16,
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
