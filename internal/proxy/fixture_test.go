package proxy_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/ledger"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// upstream is a stand-in with a gate in front of it. Its credential has the same name.
type upstream struct {
	*proxy.Upstream
	standin *standin.Server
	answer  http.Handler       // the stand-in, unless a test replaces it before the first request
	asked   chan *http.Request // requests received, while the channel has room
}

// start starts a stand-in and returns it with its gate.
func start(t testing.TB, name, key string, l *ledger.Ledger, limits []quota.Limit,
	log *slog.Logger) *upstream {
	t.Helper()
	api, err := standin.New(name)
	must(t, err)
	api.Keys = []string{key}
	u := &upstream{standin: api, answer: api, asked: make(chan *http.Request, 100)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case u.asked <- r.Clone(context.Background()):
		default:
		}
		u.answer.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections() // otherwise Close waits for endless responses
		server.Close()
	})
	table, err := costs.Shipped().Upstream(name)
	must(t, err)
	cred := config.Credential{Name: name, Upstream: name, Limits: limits}
	gate := metertest.Gate(t, server.URL, table, cred.Budget(l, table, log), log)
	gate.Key = func() (string, error) { return key, nil }
	u.Upstream = &proxy.Upstream{Name: name, Transport: gate}
	return u
}

// booked returns the units in the ledger by bucket, without use by other programs, and the sum of
// the units still held.
func (u *upstream) booked(t testing.TB) (units map[string]int64, sum int64) {
	t.Helper()
	units, held := metertest.Booked(t, u.Budget.Ledger, u.Name)
	for _, n := range held {
		sum += n
	}
	return units, sum
}

// used returns the units of a bucket in the ledger.
func (u *upstream) used(t testing.TB, bucket string) int64 {
	t.Helper()
	units, _ := u.booked(t)
	return units[bucket]
}

// metered is a proxy in front of several upstreams that share one ledger.
type metered struct {
	front
	ledger                     *ledger.Ledger
	proxy                      *proxy.Proxy
	generic, openai, anthropic *upstream
	log                        metertest.Log
}

// meteredOn starts the upstreams and the proxy. limits apply to openai. change prepares them before
// the proxy starts.
func meteredOn(t testing.TB, l *ledger.Ledger, limits []quota.Limit,
	change ...func(*metered)) *metered {
	t.Helper()
	m := &metered{ledger: l}
	log := slog.New(slog.NewTextHandler(&m.log, nil))
	m.proxy = &proxy.Proxy{Limits: proxy.DefaultLimits(), Metrics: proxy.NewMetrics(), Log: log}
	add := func(name string, limits []quota.Limit) *upstream {
		u := start(t, name, canary, l, limits, log)
		u.standin.Prices, u.standin.Limits = map[string]float64{}, map[string][]standin.Limit{}
		u.Missed = m.proxy.Metrics.Missed
		m.proxy.Upstreams = append(m.proxy.Upstreams, u.Upstream)
		return u
	}
	m.generic, m.openai, m.anthropic = add("generic", nil), add("openai", limits),
		add("anthropic", nil)
	for _, f := range change {
		f(m)
	}
	m.front = serve(t, m.proxy, "127.0.0.1:0")
	return m
}

// openMetered is meteredOn with a ledger in SQLite and the prices and limits of quiet.
func openMetered(t testing.TB, change ...func(*metered)) *metered {
	t.Helper()
	return meteredOn(t, metertest.File(t), nil, append([]func(*metered){quiet}, change...)...)
}

// answering replaces the stand-in of openai with a handler.
func answering(answer http.HandlerFunc) func(*metered) {
	return func(m *metered) { m.openai.answer = answer }
}

// awaitSettled waits until no request is under way and no call is open.
func (m *metered) awaitSettled(t testing.TB) {
	t.Helper()
	await(t, func() bool { return m.proxy.UnderWay() == 0 })
	for _, u := range m.proxy.Upstreams {
		await(t, func() bool { return u.Open() == 0 })
	}
}

// expectBilled checks that the ledger has exactly the units that the stand-in billed, and no holds.
func (m *metered) expectBilled(t testing.TB, u *upstream) {
	t.Helper()
	m.awaitSettled(t)
	booked, held := u.booked(t)
	billed := u.standin.Counts().Units
	for bucket, units := range billed {
		if booked[bucket] != units {
			t.Errorf("%s: %d of %s booked, but %d billed", u.Name, booked[bucket], bucket, units)
		}
	}
	for bucket, units := range booked {
		if _, known := billed[bucket]; !known && units > 0 {
			t.Errorf("%s: %d of %s booked, but none billed", u.Name, units, bucket)
		}
	}
	if held != 0 || len(billed) == 0 {
		t.Errorf("%s: %d units are still held; billed: %v", u.Name, held, billed)
	}
}
