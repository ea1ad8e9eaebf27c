package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/limit"
	"quotabudget/internal/meter"
	"quotabudget/internal/notify"
	"quotabudget/internal/proxy"
	"quotabudget/internal/report"
)

type proxyFlags struct {
	listen    string
	names     []string // of credentials
	hosts     []string
	origins   []string
	tokens    string // path
	admin     string
	requests  int
	estimates []string
	drain     meter.Drain
	drainMiB  int64
	uploadMiB int64
	bodiesMiB int64
}

func (a *app) proxy() *cobra.Command {
	limits := proxy.DefaultLimits()
	f := proxyFlags{requests: limits.Requests, drain: meter.Drain{Time: 2 * time.Minute},
		drainMiB: 64, uploadMiB: limits.Upload >> 20, bodiesMiB: limits.Bodies >> 20}
	c := a.Command("proxy", func(c *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		// such as an unset "$TOKENS"
		if f.tokens == "" && c.Flags().Changed("token-file") {
			return cli.Hint(cli.Usagef("--token-file is empty"),
				"leave it out to serve everyone who can connect")
		}
		return a.serveProxy(c.Context(), f)
	})
	flags := c.Flags()
	cli.Flags(flags, "listen", &f.listen, "credential", &f.names, "host", &f.hosts,
		"allow-origin", &f.origins, "token-file", &f.tokens, "admin", &f.admin,
		"max-requests", &f.requests, "estimate", &f.estimates, "drain-time", &f.drain.Time,
		"drain-size", &f.drainMiB, "max-upload", &f.uploadMiB, "max-bodies", &f.bodiesMiB)
	cli.Limit(flags, 1, cli.ManyMiB, "max-requests", "max-upload", "drain-size")
	cli.Limit(flags, meter.MaxBody>>20, cli.ManyMiB, "max-bodies") // so that any body can fit
	cli.Bound(c.MarkFlagFilename("token-file"))
	return c
}

func (f *proxyFlags) check() error {
	switch {
	case f.listen == "":
		return cli.Hint(cli.Usagef("--listen is missing"), "quotactl proxy --listen 127.0.0.1:8090")
	case f.drain.Time <= 0:
		return cli.Usagef("--drain-time must be more than 0")
	}
	for _, host := range f.hosts {
		if err := proxy.CheckHost(host); err != nil {
			return cli.Usagef("--host: %w", err)
		}
	}
	for _, origin := range f.origins {
		if err := proxy.CheckOrigin(origin); err != nil {
			return cli.Usagef("--allow-origin: %w", err)
		}
	}
	return nil
}

func (a *app) serveProxy(ctx context.Context, f proxyFlags) error {
	for flag, address := range map[string]string{"listen": f.listen, "admin": f.admin} {
		if err := cli.CheckAddress(flag, address, "127.0.0.1:8090"); err != nil &&
			(flag == "admin" || !strings.HasPrefix(address, "unix:")) {
			return err
		}
	}
	cfg, err := a.Load(ctx)
	if err != nil {
		return err
	}
	served, err := a.servedCredentials(cfg, f.names)
	if err != nil {
		return err
	}
	l, err := cli.OpenLedger(ctx, cfg.Ledger)
	if err != nil {
		return err
	}
	defer l.Close()
	handler, err := a.newProxy(cfg, served, l, f)
	if err != nil {
		return err
	}
	listener, err := proxy.Listen(f.listen)
	if err != nil {
		return listenError(err)
	}
	defer listener.Close()
	if proxy.Exposed(listener.Addr()) && handler.Callers == nil {
		return cli.Hint(cli.Usagef("--listen %s: other machines could connect and spend your quota",
			f.listen), "listen on 127.0.0.1 or unix:PATH, or name the callers with --token-file")
	}
	// browsers send the page's origin only to loopback addresses
	if len(f.hosts) > 0 && handler.Callers == nil {
		handler.Log.Warn("web pages may spend quota through a --host name: not every browser reports "+
			"that a page sent the request", "hint", "name the callers with --token-file")
	}
	group, ctx := errgroup.WithContext(ctx)
	if f.admin != "" {
		admin, err := net.Listen("tcp", f.admin)
		if err != nil {
			return listenError(fmt.Errorf("--admin: %w", err))
		}
		handler.Log.Info("health and metrics are served", "address", admin.Addr().String())
		group.Go(func() error { return handler.ServeAdmin(ctx, admin) })
	}
	group.Go(func() error {
		a.ExportMetrics(ctx, "quota-proxy", handler.Metrics.Registry)
		return nil
	})
	handler.Post(ctx)
	fmt.Fprintln(a.Stdout, proxyURL(listener.Addr()))
	group.Go(func() error {
		handler.Watch(ctx)
		return nil
	})
	group.Go(func() error { return handler.Serve(ctx, listener) })
	src := report.Source{Config: cfg, Ledger: l}
	n := notify.New(func() report.Source { return src }, os.Environ(), handler.Log)
	return n.During(ctx, group.Wait)
}

func listenError(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return cli.Hint(err, "another program is listening there; port 0 picks a free one")
	}
	return err
}

func proxyURL(at net.Addr) string {
	if at.Network() == "unix" {
		return "unix:" + at.String()
	}
	return "http://" + at.String() + "/"
}

func (a *app) newProxy(cfg *config.Config, served []config.Credential, l *ledger.Ledger,
	f proxyFlags) (*proxy.Proxy, error) {
	log := a.Logger()
	callers, err := a.readCallers(cfg, f.tokens)
	if err != nil {
		return nil, &cli.Coded{Code: cli.ExitConfig, Err: err}
	}
	estimates, err := meter.ParseEstimates(f.estimates, func(method, bucket string) error {
		table, _, err := cfg.Prices.Lookup(method)
		if err != nil {
			return err
		}
		if _, ok := table.Bucket(bucket); !ok && bucket != "" {
			return fmt.Errorf("%s does not use bucket %q", method, bucket)
		}
		return nil
	})
	if err != nil {
		return nil, cli.Usagef("--estimate: %w", err)
	}
	for method, e := range estimates {
		if e.Most > 0 {
			log.Warn("--estimate sets the units to hold: calls in flight can exceed a limit by "+
				"more than status shows", "of", method, "units", e.Most)
		}
	}
	limits := proxy.DefaultLimits()
	limits.Requests, limits.Upload, limits.Bodies = f.requests, f.uploadMiB<<20, f.bodiesMiB<<20
	p := &proxy.Proxy{Hosts: f.hosts, Origins: f.origins, Callers: callers, Limits: limits,
		Metrics: proxy.NewMetrics(), Log: log}
	// a chosen credential, or the only one, serves paths that name no upstream
	p.NamedOnly = served[0].Upstream != cfg.Costs.Upstream && len(served) > 1 && len(f.names) == 0
	for _, cred := range served {
		up, err := cli.Upstream(cfg, cred, l, log)
		if err != nil {
			return nil, &cli.Coded{Code: cli.ExitConfig, Err: err}
		}
		t := up.Transport
		if len(t.Budget.Limits) == 0 {
			log.Warn("a credential has no limits: whatever is sent with it is recorded, and "+
				"nothing is denied", "upstream", up.Name, "credential", cred.Name,
				"hint", "write your account's limits into quota.yaml, under limits:")
		}
		t.Estimates, t.Missed = estimates, p.Metrics.Missed
		for _, m := range cfg.Table(cred).Methods() {
			if !m.Known() {
				p.Metrics.Expect(m.ID)
			}
		}
		t.Drain = meter.Drain{Time: f.drain.Time, Bytes: f.drainMiB << 20, Calls: f.requests}
		p.Upstreams = append(p.Upstreams, up)
	}
	p.Unserved = cli.Unserved(cfg, served)
	return p, nil
}

// readCallers reads the token file. Without one it returns nil: every program may call.
func (a *app) readCallers(cfg *config.Config, path string) (*limit.Tokens, error) {
	if path == "" {
		return nil, nil
	}
	callers, err := cfg.ReadTokens("--token-file", path, true)
	if err != nil {
		return nil, cli.Hint(err, limit.TokenAdvice)
	}
	config.FileSecret(path, a.Getenv).WarnExposed(a.Logger())
	return callers, nil
}

// servedCredentials returns the credentials to serve, one for each upstream that has any: the
// default upstream's first, then the chosen ones.
func (a *app) servedCredentials(cfg *config.Config, names []string) (
	served []config.Credential, err error) {
	chosen, err := a.chosenCredentials(cfg, names)
	if err != nil {
		return nil, err
	}
	log, servedBy := a.Logger(), map[string]string{}
	for _, cred := range cfg.Credentials {
		name, isChosen := chosen[cred.Upstream]
		if isChosen && name != cred.Name {
			continue
		}
		if other := servedBy[cred.Upstream]; other != "" {
			return nil, cli.Hint(cli.Usagef("%s has several credentials: %s and %s", cred.Upstream,
				other, cred.Name), "choose one with --credential, which may be repeated: one for "+
				"each upstream")
		}
		if _, err := cred.APIKey.Key(); err != nil {
			if isChosen {
				return nil, cli.Misconfigured(err, "%s", cred.APIKey.Advice())
			}
			log.Warn("an upstream is not served: its credential has no key",
				"upstream", cred.Upstream, "credential", cred.Name, "error", err)
			continue
		}
		servedBy[cred.Upstream] = cred.Name
		cred.APIKey.WarnExposed(log)
		served = append(served, cred)
	}
	if len(served) == 0 {
		return nil, &cli.Coded{Code: cli.ExitConfig,
			Err: fmt.Errorf("no credential has a key, so there is no upstream to serve")}
	}
	rank := func(c config.Credential) int {
		switch {
		case c.Upstream == cfg.Costs.Upstream:
			return 0
		case chosen[c.Upstream] != "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(served, func(a, b config.Credential) int { return rank(a) - rank(b) })
	return served, nil
}

// chosenCredentials returns the credentials of the flags, by upstream; without flags the only one,
// or the ingestor's.
func (a *app) chosenCredentials(cfg *config.Config, names []string) (map[string]string, error) {
	switch {
	case len(names) > 0:
	case len(cfg.Credentials) == 1:
		names = []string{cfg.Credentials[0].Name}
	case cfg.Ingest.Credential != "":
		names = []string{cfg.Ingest.Credential}
	}
	chosen := map[string]string{}
	for _, name := range names {
		cred, err := cfg.Credential(name)
		if err != nil {
			return nil, cli.Usagef("--credential: %w", err)
		}
		if other := chosen[cred.Upstream]; other != "" && other != name {
			return nil, cli.Usagef("--credential: %s and %s are both of %s: choose one for each "+
				"upstream", other, name, cred.Upstream)
		}
		chosen[cred.Upstream] = name
	}
	return chosen, nil
}
