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

// routes are what the daemon answers over HTTP.
func (d *Daemon) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", d.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.Metrics.Registry, promhttp.HandlerOpts{Registry: d.Metrics.Registry}))
	return mux
}

// ready answers whether a tick could run: ledger and catalogue are there.
func (d *Daemon) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	var reasons []string
	if work := d.now.Load(); work == nil {
		reasons = append(reasons, "the lanes do not run yet")
	} else {
		if _, err := work.Sweep.Budget.Usage(ctx); err != nil {
			reasons = append(reasons, "ledger: "+err.Error())
		}
		if _, err := work.Sweep.Catalog.Staleness(ctx, nil); err != nil {
			reasons = append(reasons, "catalogue: "+err.Error())
		}
	}
	if len(reasons) > 0 {
		http.Error(w, strings.Join(reasons, "\n"), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// Handler answers /healthz, /readyz and /metrics for the daemon. It is made once, and adds to the registry of Metrics what is asked
// when they are read.
func (d *Daemon) Handler() http.Handler {
	d.Metrics.Registry.MustRegister(newStanding(d))
	return d.routes()
}

// Serve answers on the listener until ctx ends, and closes it.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16,
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
