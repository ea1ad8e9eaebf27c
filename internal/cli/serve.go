package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/limit"
	"quotabudget/internal/notify"
	"quotabudget/internal/report"
	"quotabudget/internal/serve"
)

// Door is an open address and its handler.
type Door struct {
	net.Listener
	handler http.Handler
	export  func(context.Context) // sends the metrics until the context ends
	secure  *tls.Config           // nil for plain HTTP
	grace   time.Duration
	close   func() error
}

// URL returns the address of the door.
func (d *Door) URL() string {
	if d.secure != nil {
		return "https://" + d.Addr().String() + "/"
	}
	return "http://" + d.Addr().String() + "/"
}

// Serve answers requests until ctx ends.
func (d *Door) Serve(ctx context.Context) error {
	exporting, end := context.WithCancel(ctx)
	var exports sync.WaitGroup
	exports.Go(func() { d.export(exporting) })
	err := serve.Serve(ctx, d.Listener, d.handler, d.secure, d.grace)
	end()
	exports.Wait()
	return errors.Join(err, d.close())
}

// ServeLedger serves the ledger, and the catalogue unless it is nil, until ctx ends, and prints the
// address. Meanwhile it sends notifications; commands get the variables environ.
func (c *Common) ServeLedger(ctx context.Context, cfg *config.Config, charts *catalog.Catalog,
	environ []string) error {
	l, err := OpenLedger(ctx, cfg.Ledger)
	if err != nil {
		return err
	}
	src := report.Source{Config: cfg, Ledger: l}
	door, err := c.FrontDoor(ctx, charts, func() report.Source { return src })
	if err == nil {
		fmt.Fprintln(c.Stdout, door.URL())
		n := notify.New(func() report.Source { return src }, environ, c.Logger())
		err = n.During(ctx, func() error { return door.Serve(ctx) })
	}
	return errors.Join(err, l.Close())
}

// FrontDoor opens the configured address, and serves the ledger and, unless it is nil, the
// catalogue. Later changes of serve: take effect at the next start.
func (c *Common) FrontDoor(ctx context.Context, charts *catalog.Catalog,
	source func() report.Source) (*Door, error) {
	cfg := source().Config
	server, err := serve.New(cfg)
	if err != nil {
		return nil, &Coded{Code: ExitConfig, Err: err}
	}
	config.FileSecret(cfg.Serve.TokenFile, c.Getenv).WarnExposed(c.Logger())
	server.Catalog, server.Log, server.Source = charts, c.Logger(), source
	secure, err := serve.Secure(cfg.Serve.TLS.Cert, cfg.Serve.TLS.Key, c.Logger())
	if err != nil {
		return nil, &Coded{Code: ExitConfig, Err: err}
	}
	var closeStore func() error
	if server.Guard, closeStore, err = limiter(ctx, cfg); err != nil {
		return nil, err
	}
	if server.Guard != nil {
		sometimes := rate.Sometimes{Interval: time.Minute}
		server.Guard.Unreachable = func(_ *http.Request, err error) {
			sometimes.Do(func() {
				server.Log.Error("limits cannot be checked: when_unreachable sets which requests "+
					"pass", "error", err, "hint", "check the Redis server of the ledger")
			})
		}
	}
	handler, err := server.Handler()
	if err != nil {
		return nil, errors.Join(&Coded{Code: ExitConfig, Err: err}, closeStore())
	}
	listener, err := net.Listen("tcp", cfg.Serve.Listen)
	if err != nil {
		err = Hint(err, "another program is listening there: choose another address with "+
			"listen: under serve: or --listen; port 0 picks a free one")
		return nil, errors.Join(err, closeStore())
	}
	bound := listener.Addr().(*net.TCPAddr)
	if !bound.IP.IsLoopback() && !server.Public {
		server.Log.Warn("other machines can read the budgets without a token: to require one, "+
			"set public: true and token_file under serve:", "address", bound.String())
	}
	server.Log.Info("serving", "address", bound.String())
	export := func(ctx context.Context) { c.ExportMetrics(ctx, "quota-serve", server.Metrics) }
	return &Door{listener, handler, export, secure, cfg.Daemon.Grace, closeStore}, nil
}

// limiter returns the guard of the configured limits, nil for none, and a function that closes its
// store.
func limiter(ctx context.Context, cfg *config.Config) (*limit.Guard, func() error, error) {
	own, nothing := &cfg.Serve, func() error { return nil }
	if len(own.Limits) == 0 {
		return nil, nothing, nil
	}
	g := &limit.Guard{Limits: own.Limits, Caller: own.Known.Of, Stats: &limit.Stats{}}
	if !own.OnRedis {
		g.Store = limit.NewMemory()
		return g, nothing, nil
	}
	client, err := redisstore.Connect(ctx, cfg.Ledger)
	if err != nil {
		return nil, nil, err
	}
	g.Store = limit.NewRedis(client)
	return g, client.Close, nil
}

// CheckAddress validates the address of a flag, if it is given.
func CheckAddress(flag, address, example string) error {
	if !config.IsAddress(address) {
		return Usagef("--%s %q: write host:port, such as %s", flag, address, example)
	}
	return nil
}

// CheckListen validates a required --listen.
func CheckListen(address, usage string) error {
	if address == "" {
		return Hint(Usagef("--listen is missing"), "%s", usage)
	}
	return CheckAddress("listen", address, "127.0.0.1:8080")
}

// ServeStandin serves a stand-in until the context ends, and prints its counts.
func (c *Common) ServeStandin(ctx context.Context, address string, standin http.Handler,
	counts func() any) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return Hint(err, "another program is listening there; port 0 picks a free one")
	}
	fmt.Fprintf(c.Stdout, "http://%s/\n", listener.Addr())
	c.Logger().Info("stand-in listens", "address", listener.Addr().String())
	web := &http.Server{Handler: standin, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	err = web.Close()
	return errors.Join(err, json.NewEncoder(c.Stdout).Encode(counts()))
}
