package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Serve serves on the listener until ctx ends, and then shuts down.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	until, err := p.serve(ctx, listener, &http.Server{
		Handler: p, ReadHeaderTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
		// pass OPTIONS * to the handler, which logs it
		DisableGeneralOptionsHandler: true,
	})
	p.finish(until)
	return err
}

// postTime is how long a proxy waits for the ledger before it serves.
const postTime = 10 * time.Second

// Post books the calls that an earlier process left in the host's journal.
func (p *Proxy) Post(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, postTime)
	defer done()
	for _, u := range p.Upstreams {
		if err := u.Budget.Post(ctx); err != nil {
			p.Log.Warn("cannot post the journal, retrying later", "upstream", u.Name, "error", err)
		}
	}
}

// Watch polls the upstreams, until ctx ends, for the end of calls that go on after their response.
func (p *Proxy) Watch(ctx context.Context) {
	var all sync.WaitGroup
	for _, u := range p.Upstreams {
		all.Go(func() { u.Watch(ctx) })
	}
	all.Wait()
}

// ServeLocally serves on a free port of this machine until stop is called. Once it listens, it
// returns its address, such as http://127.0.0.1:40123/WORD. It refuses requests without the word.
func (p *Proxy) ServeLocally(ctx context.Context) (address string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	p.word = rand.Text()
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- p.Serve(serving, listener) }()
	return "http://" + listener.Addr().String() + "/" + p.word, func() {
		cancel()
		if err := <-served; err != nil {
			p.Log.Error("the proxy of the command has failed", "error", err)
		}
	}, nil
}

// Environment returns the variables by which API libraries find a proxy at the address.
func (p *Proxy) Environment(address string) (env []string) {
	for _, up := range p.Upstreams {
		for name, path := range up.Table.Environment {
			env = append(env, name+"="+address+"/"+up.Name+strings.TrimSuffix(path, "/"))
		}
	}
	return env
}

// finish waits, at most until a deadline, for responses to be read and booked. The remaining holds
// lapse into charges.
func (p *Proxy) finish(until time.Time) {
	ctx, done := context.WithDeadline(context.Background(), until)
	defer done()
	// handlers of closed connections write their log lines and leave their responses to drains
	await(ctx, func() bool { return p.serving.Load() == 0 })
	for _, u := range p.Upstreams {
		if !await(ctx, func() bool { return u.Open() == 0 }) {
			p.Log.Warn("the proxy ends before the usage of all calls is booked: the journal has what they "+
				"used, other holds lapse",
				"upstream", u.Name, "calls", u.Open())
		}
	}
}

// await waits for a condition, and reports whether it became true before ctx ended.
func await(ctx context.Context, holds func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// ServeAdmin serves /healthz, /readyz and /metrics on the listener until ctx ends.
func (p *Proxy) ServeAdmin(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "alive")
	})
	mux.HandleFunc("GET /readyz", p.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.Metrics.Registry,
		promhttp.HandlerOpts{Registry: p.Metrics.Registry, EnableOpenMetrics: true}))
	_, err := p.serve(ctx, listener, &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	})
	return err
}

// ready reports whether a request could be charged and sent with the key.
func (p *Proxy) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
	defer cancel()
	for _, u := range p.Upstreams {
		b := u.Budget // checks only the configured limits, not every part ever used
		_, err := b.Ledger.Usage(ctx, b.Credential, b.Limits)
		if err == nil {
			_, err = u.Key()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
	}
	fmt.Fprintln(w, "ready")
}

// serve serves on the listener until ctx ends. It then waits three quarters of Limits.Ending for
// the requests under way, and returns the time at which Limits.Ending is over.
func (p *Proxy) serve(ctx context.Context, listener net.Listener,
	server *http.Server) (until time.Time, err error) {
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ending := p.Limits.Ending
	select {
	case err := <-served:
		return time.Now().Add(ending), err
	case <-ctx.Done():
	}
	until = time.Now().Add(ending)
	end, cancel := context.WithDeadline(context.WithoutCancel(ctx), until.Add(-ending/4))
	defer cancel()
	err = server.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	return until, err
}

// Listen listens on an address: host:port, or unix:PATH for a socket that only its user can reach.
// A stale socket is replaced; a socket that answers is not.
func Listen(address string) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return net.Listen("tcp", address)
	}
	if path == "" {
		return nil, errors.New("unix: has no path, write unix:PATH")
	}
	if err := clear(path); err != nil {
		return nil, err
	}
	mask := syscall.Umask(0o177) // so that other users cannot connect before the mode is set
	defer syscall.Umask(mask)
	return net.Listen("unix", path)
}

func clear(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("%s: %w", path, syscall.EADDRINUSE)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return err
	}
	return os.Remove(path)
}

// Exposed reports whether other machines can reach an address that the proxy listens on.
func Exposed(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}
