package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	var f proxyFlags
	c := &cobra.Command{
		Use:   "proxy --listen ADDR",
		Short: "Meter the requests of any program",
		Long: `proxy forwards requests to the upstreams of the price list and charges each before it is
sent. Point a program here instead of at the upstream. The default upstream is served by its own
paths, such as /youtube/v3/videos, others below their names, such as /openai/v1/chat/completions.
If only one is served, or the default is not, the first that --credential names has both.

If the price is known only after a call, the most it can take is set aside before it is sent, and what
it took is booked when its response ends, even if the caller hangs up.

It adds the credential's API key and drops keys that the program sends. An OAuth token
(Authorization: Bearer) is passed on without the key if the method takes one; its project must be
the credential's.

A denial is answered with 429, Retry-After and an error in the format of the upstream, or as
problem+json if Accept asks for it. Refused requests are not sent and cost nothing:
  400  the upstream could read the request differently than we charge it, or it has no price
  401  the caller sent no token of the --token-file
  403  Host is neither the listening address nor a --host, or a web page sent the request whose
       Origin is not named with --allow-origin
  404, 405  no method of the price list has this path, or this verb on it
  408, 413, 503  the body came too slowly or is too large; too many requests at once
502 and 504 report whether the request was charged.

Anyone who can connect can spend your quota. Loopback and a unix socket (mode 0600) need no token;
any other address needs --token-file: a line for each caller, with a name, a token of 16 characters
or more, and the word manual for people, who may use the headroom. The caller sends the token as
X-Quota-Token, as Authorization: Bearer (or token, or Basic with it as the password), or as its API
key; its name becomes the label caller.`,
		Example: `  quotactl proxy --listen 127.0.0.1:8090 --admin 127.0.0.1:9311
  curl 'http://127.0.0.1:8090/youtube/v3/i18nRegions?part=snippet'
  quotactl proxy --listen unix:/run/quota/proxy.sock
  quotactl proxy --listen :8090 --host gate.lan --token-file /etc/quota/tokens`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			// such as an unset "$TOKENS"
			if f.tokens == "" && c.Flags().Changed("token-file") {
				return cli.Hint(cli.Usagef("--token-file is empty"),
					"leave it out to serve everyone who can connect")
			}
			return a.serveProxy(c.Context(), f)
		},
	}
	f.bind(c.Flags())
	cli.Bound(c.MarkFlagFilename("token-file"))
	return c
}

func (f *proxyFlags) bind(flags *pflag.FlagSet) {
	limits := proxy.DefaultLimits()
	flags.StringVar(&f.listen, "listen", "",
		"`ADDR` to listen on, such as 127.0.0.1:8090, or unix:PATH; port 0 picks a free one")
	flags.StringArrayVar(&f.names, "credential", nil, // replaces the flag of all commands
		"`NAME` of the credential of an upstream that has several; may be repeated, one for each")
	flags.StringArrayVar(&f.hosts, "host", nil,
		"also answer to this `NAME` in the Host header; may be repeated")
	flags.StringArrayVar(&f.origins, "allow-origin", nil,
		"let web pages of this `ORIGIN`, such as https://dashboard.example, use the proxy; may be "+
			"repeated")
	flags.StringVar(&f.tokens, "token-file", "",
		"serve only callers with a token in `FILE`: a name and a token on each line")
	flags.StringVar(&f.admin, "admin", "", "serve /healthz, /readyz and /metrics on `ADDR`")
	flags.IntVar(&f.requests, "max-requests", limits.Requests,
		"answer 503 to more than `N` requests at once")
	flags.StringArrayVar(&f.estimates, "estimate", nil,
		"hold units for calls of unknown price by `POLICY`: worst, learned (default), N units "+
			"at most, or METHOD=POLICY, METHOD/BUCKET=POLICY; may be repeated")
	flags.DurationVar(&f.drain.Time, "drain-time", 2*time.Minute,
		"read a response for at most `DURATION` after its caller disconnects")
	flags.Int64Var(&f.drainMiB, "drain-size", 64,
		"read at most `N` MiB of a response after its caller disconnects")
	flags.Int64Var(&f.uploadMiB, "max-upload", limits.Upload>>20,
		"refuse uploads of more than `N` MiB; other bodies may be 1 MiB, or 32 where the price "+
			"depends on them")
	flags.Int64Var(&f.bodiesMiB, "max-bodies", limits.Bodies>>20,
		"answer 503 once bodies in memory, uploads aside, exceed `N` MiB")
	cli.Limit(flags, 1, math.MaxInt32, "max-requests", "max-upload", "drain-size")
	cli.Limit(flags, meter.MaxBody>>20, math.MaxInt32, "max-bodies") // so that any body can fit
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
		if address != "" && !strings.HasPrefix(address, "unix:") && !cli.Addressable(address) {
			return cli.Usagef("--%s %q: write host:port, such as 127.0.0.1:8090", flag, address)
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
		return checkEstimate(cfg, method, bucket)
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
