package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/proxy"
	"quotabudget/internal/upstream"
)

// proxyFlags are those of the proxy.
type proxyFlags struct {
	listen  string
	hosts   []string
	origins []string
}

func (a *app) proxy() *cobra.Command {
	var f proxyFlags
	c := &cobra.Command{
		Use:   "proxy --listen ADDR",
		Short: "Meter the requests of any program",
		Long: `proxy forwards requests to the upstream (youtube: endpoint: in quota.yaml) and charges each of them before it is sent, so that a
program in any language is metered by pointing it here instead of at the upstream. It adds the credential's API key; a key that
the program sends is dropped. A denial is answered with 429, Retry-After and an error in Google's form; nothing was sent then.

Requests must name the proxy by the address it listens on, or by a --host. Those that a web page sends are refused (403, and
nothing is charged) unless the page's origin is named with --allow-origin.

It takes requests from whoever can reach ADDR, and spends your quota on them: keep it on loopback. Ctrl-C ends it.`,
		Example: `  quotactl proxy --listen 127.0.0.1:8090
  curl 'http://127.0.0.1:8090/youtube/v3/i18nRegions?part=snippet'
  quotactl proxy --listen 127.0.0.1:8090 --allow-origin https://dashboard.example`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.with(c.Context(), func(g *gate) error { return a.serveProxy(c.Context(), g, f) })
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "", "`ADDR` to listen on, such as 127.0.0.1:8090; port 0 picks a free one")
	flags.StringArrayVar(&f.hosts, "host", nil, "also answer to this `NAME` in the Host header; may be repeated")
	flags.StringArrayVar(&f.origins, "allow-origin", nil, "let web pages of this `ORIGIN` use the proxy; may be repeated")
	return c
}

func (f proxyFlags) check() error {
	if f.listen == "" {
		return cli.Hint(cli.Usagef("--listen is missing"), "quotactl proxy --listen 127.0.0.1:8090")
	}
	for _, origin := range f.origins {
		if err := proxy.CheckOrigin(origin); err != nil {
			return cli.Usagef("--allow-origin: %w", err)
		}
	}
	return nil
}

// exposed reports whether others than this machine reach an address that is listened on.
func exposed(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// proxyGrace is how long requests under way may take once the proxy is to end.
const proxyGrace = 20 * time.Second

func (a *app) serveProxy(ctx context.Context, g *gate, f proxyFlags) error {
	cred, err := a.Chosen(g.cfg)
	if err != nil {
		return err
	}
	if _, err := cred.APIKey.Key(); err != nil {
		return &cli.Coded{Code: cli.ExitConfig, Err: cli.Hint(err, "%s", cred.APIKey.Advice())}
	}
	cred.APIKey.WarnExposed(a.Logger(a.stderr))
	endpoint, err := url.Parse(g.cfg.YouTube.Endpoint)
	if err != nil {
		return err
	}
	log := a.Logger(a.stderr)
	transport, err := upstream.Gate(g.cfg.YouTube.Endpoint, g.cfg.Costs, g.Budget, cred.APIKey.Key, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return cli.Hint(err, "another program may listen there; port 0 picks a free one")
	}
	if at := listener.Addr(); exposed(at) {
		log.Warn("the proxy can be reached from outside of this machine, and spends for whoever reaches it", "address", at.String())
	}
	fmt.Fprintf(a.stdout, "http://%s/\n", listener.Addr())
	handler := &proxy.Proxy{Transport: transport, Upstream: endpoint, Hosts: f.hosts, Origins: f.origins, Log: log}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), proxyGrace)
	defer cancel()
	if err := server.Shutdown(end); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
