// Package serve is the HTTP API and the pages. It reads the catalogue and the ledger.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/limit"
	"quotabudget/internal/report"
)

// Server serves the API and the pages. Its fields are set before Handler is called.
type Server struct {
	Catalog *catalog.Catalog     // nil for the ledger alone, without charts and pages
	Source  func() report.Source // the configuration in force, and the ledger
	Hosts   []string             // names of this server besides the address that it listens on
	Public  bool                 // budgets, forecast, plan, log and decisions require a token
	Tokens  *limit.Tokens
	Guard   *limit.Guard // limits requests; nil for no limits and no decisions
	Log     *slog.Logger
	Metrics prometheus.Gatherer // set by Handler

	site     *site
	accounts accounts

	ledgerFailed, catalogFailed rate.Sometimes
}

// Handler returns the handler of all requests.
func (s *Server) Handler() (http.Handler, error) {
	mux := http.NewServeMux()
	s.ledgerFailed.Interval, s.catalogFailed.Interval = time.Minute, time.Minute
	document := s.api(mux).OpenAPI()
	text, err := document.MarshalJSON()
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(text)
	})
	if s.Catalog != nil {
		s.site = &site{Server: s}
		s.site.routes(mux)
	}
	route := func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}
	guarded := reading(refusing(mux))
	if s.Guard != nil {
		if err := checkRoutes(s.Guard.Limits, route); err != nil && s.Catalog != nil {
			return nil, err
		}
		if s.site != nil {
			s.Guard.Answer = s.site.refuse
		}
		s.Guard.Route = func(r *http.Request) string { return r.Pattern } // of measured
		guarded = s.Guard.Wrap(guarded)
	}
	front := http.NewServeMux()
	guarded = s.measured(front, route, guarded)
	// these have no limits: published short links and health checks must always work
	if s.Catalog != nil {
		front.HandleFunc("GET /s/{slug}", s.follow)
	}
	front.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "alive")
	})
	front.HandleFunc("GET /readyz", s.ready)
	front.Handle("/", guarded)
	return s.checked(front), nil
}

// checkRoutes reports a limit for a route that does not exist, which would limit nothing.
func checkRoutes(limits []limit.Rule, route func(*http.Request) string) error {
	for _, l := range limits {
		for _, pattern := range l.Routes {
			method, path, _ := strings.Cut(pattern, " ")
			request := &http.Request{Method: method, URL: &url.URL{Path: path}}
			if route(request) != pattern {
				return fmt.Errorf("serve: limit %s: there is no route %q to limit, as in "+
					"/openapi.json: GET /v1/charts/{region}", l.Name, pattern)
			}
		}
	}
	return nil
}

// regionStates returns the states of the regions to show. A reload may change them.
func (s *Server) regionStates(ctx context.Context) ([]catalog.RegionState, error) {
	return s.Source().RegionStates(ctx, s.Catalog)
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	keepPrivate(w.Header())
	var err error
	if s.Catalog != nil {
		_, err = s.regionStates(ctx)
	} else {
		_, err = s.Source().Ledger.Time(ctx)
	}
	if err != nil {
		text := err.Error() // it names files of this machine
		if !s.mayReadPrivate(r.Header.Get("Authorization")) {
			text = "the catalogue or the ledger cannot be read now"
		}
		http.Error(w, text, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// refusing answers requests to /v1 with problem+json if mux does not have their path or method.
func refusing(mux *http.ServeMux) http.Handler {
	has := func(method string, r *http.Request) bool {
		_, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host})
		return pattern != "" && pattern != anyPage
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") || has(r.Method, r) {
			mux.ServeHTTP(w, r)
			return
		}
		methods := slices.DeleteFunc([]string{"GET", "HEAD", "POST", "PATCH", "DELETE"},
			func(method string) bool { return !has(method, r) })
		if len(methods) == 0 {
			writeProblem(w, huma.Error404NotFound("no such route: /openapi.json lists them"))
			return
		}
		w.Header().Set("Allow", strings.Join(methods, ", "))
		writeProblem(w, huma.Error405MethodNotAllowed("no such method: see /openapi.json"))
	})
}

// writeProblem writes the response to an error, as the API does.
func writeProblem(w http.ResponseWriter, problem huma.StatusError) {
	limit.WriteProblem(w, problem.GetStatus(), problem)
}

// answerWithin is the maximum time to answer a request.
const answerWithin = 30 * time.Second

// Serve answers on the listener until ctx ends; requests under way then have grace to end. With
// secure it serves HTTPS.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, secure *tls.Config,
	grace time.Duration) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: answerWithin, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16,
		TLSConfig: secure,
	}
	ended := make(chan error, 1)
	go func() {
		if secure == nil {
			ended <- server.Serve(listener)
			return
		}
		ended <- server.ServeTLS(listener, "", "")
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	return err
}

// New returns the configured server, without its data sources and limits.
func New(cfg *config.Config) (*Server, error) {
	own := &cfg.Serve
	s := &Server{Hosts: own.Hosts, Public: own.Public}
	var wrong error
	if own.OnRedis && len(own.Limits) > 0 && !strings.HasPrefix(cfg.Ledger, "redis") {
		wrong = errors.New(
			"serve: store: redis keeps limits on the ledger's Redis, but the ledger is on SQLite")
	}
	if own.TokenFile == "" {
		return s, wrong
	}
	var err error
	s.Tokens, err = cfg.ReadTokens("token_file:", own.TokenFile, false)
	if wrong = errors.Join(wrong, err); wrong != nil {
		return nil, wrong
	}
	return s, nil
}

// Check reports configuration errors that keep the server from starting.
func Check(cfg *config.Config) error {
	_, wrong := New(cfg)
	s := &Server{Catalog: &catalog.Catalog{}, Guard: &limit.Guard{Limits: cfg.Serve.Limits},
		Source: func() report.Source { return report.Source{Config: cfg} }}
	_, err := s.Handler()
	return errors.Join(wrong, err)
}
