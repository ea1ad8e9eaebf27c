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
	"quotabudget/internal/meter"
	"quotabudget/internal/upstream"
)

func (a *app) proxy() *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use:   "proxy --listen ADDR",
		Short: "Meter the requests of any program",
		Long: `proxy forwards requests to the upstream (youtube: endpoint: in quota.yaml) and charges each of them before it is sent, so that a
program in any language is metered by pointing it here instead of at the upstream. It adds the credential's API key; a key that
the program sends is dropped. A denial is answered with 429, Retry-After and a problem document; nothing was sent then.

It takes requests from whoever can reach ADDR, and spends your quota on them: keep it on loopback. Ctrl-C ends it.`,
		Example: `  quotactl proxy --listen 127.0.0.1:8090
  curl 'http://127.0.0.1:8090/youtube/v3/i18nRegions?part=snippet'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			if listen == "" {
				return cli.Hint(cli.Usagef("--listen is missing"), "quotactl proxy --listen 127.0.0.1:8090")
			}
			return a.with(c.Context(), func(g *gate) error { return a.serveProxy(c.Context(), g, listen) })
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "`ADDR` to listen on, such as 127.0.0.1:8090; port 0 picks a free one")
	return c
}

// exposed reports whether others than this machine reach an address that is listened on.
func exposed(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// proxyGrace is how long requests under way may take once the proxy is to end.
const proxyGrace = 20 * time.Second

func (a *app) serveProxy(ctx context.Context, g *gate, listen string) error {
	cred, err := a.Chosen(g.cfg)
	if err != nil {
		return err
	}
	if _, err := cred.APIKey.Key(); err != nil {
		return &cli.Coded{Code: cli.ExitConfig, Err: cli.Hint(err, "%s", cred.APIKey.Advice())}
	}
	endpoint, err := url.Parse(g.cfg.YouTube.Endpoint)
	if err != nil {
		return err
	}
	transport, err := upstream.Gate(g.cfg.YouTube.Endpoint, g.cfg.Costs, g.Budget, cred.APIKey.Key, a.Logger(a.stderr))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return cli.Hint(err, "another program may listen there; port 0 picks a free one")
	}
	if at := listener.Addr(); exposed(at) {
		a.Logger(a.stderr).Warn("the proxy can be reached from outside of this machine, and spends for whoever reaches it", "address", at.String())
	}
	fmt.Fprintf(a.stdout, "http://%s/\n", listener.Addr())
	server := &http.Server{Handler: meter.Proxy(transport, endpoint), ReadHeaderTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
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
