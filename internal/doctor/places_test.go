package doctor_test

import (
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/doctor"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/standin"
)

// checks returns the checks with findings, without duplicates.
func checks(r doctor.Result) []string {
	var names []string
	for _, f := range r.Findings {
		names = append(names, f.Check)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func wantChecks(t *testing.T, r doctor.Result, want ...string) {
	t.Helper()
	if got := checks(r); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v: %+v", got, want, r.Findings)
	}
}

func TestSlowServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{AOF: true})
	p := newPlant(t)
	p.yaml += "ingest: {regions: [US], schedule: '0 0 1 1 *'}\n"
	distant := redistest.NewBreaker(t)
	distant.Delay = 30 * time.Millisecond
	distant.Forward(s.Addr)
	p.ledger = "redis://" + distant.Addr + "/0"
	wantChecks(t, p.examine(t), "ledger-speed")
}

// Each master of a cluster is examined, since each has its own settings. A cluster with unserved
// slots is an error.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	p := newPlant(t)
	p.yaml += "ingest: {regions: [US], schedule: '0 0 1 1 *'}\n"
	p.ledger = "redis+cluster://" + c.Masters[0].Addr
	set := func(nth int, name, value string) {
		t.Helper()
		must(t, c.Admin(c.Masters[nth]).ConfigSet(t.Context(), name, value).Err())
	}
	for i := range c.Masters {
		set(i, "appendonly", "yes")
		set(i, "min-replicas-to-write", "1")
	}
	wantChecks(t, p.examine(t))
	set(2, "min-replicas-to-write", "0")
	set(1, "appendfsync", "no")
	r := p.examine(t)
	wantChecks(t, r, "redis-fsync", "redis-replicas")
	for _, f := range r.Findings {
		nth := map[string]int{"redis-fsync": 1, "redis-replicas": 2}[f.Check]
		if !strings.Contains(f.About, c.Masters[nth].Addr) {
			t.Errorf("%s is of %s, and said of %s", f.Check, c.Masters[nth].Addr, f.About)
		}
	}
}

// With a service account, Google's reported limits count, not its defaults.
func TestGoogleLimits(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	start := func(units int64) *httptest.Server {
		google := &standin.YouTube{Limits: map[string]int64{"default": units}}
		owner, key, err := standin.NewAccountKey("p1", "https://oauth2.googleapis.com/token")
		must(t, err)
		google.Cloud = standin.Cloud{Project: "p1",
			Accounts: []*standin.ServiceAccount{owner}}
		web := httptest.NewServer(google)
		t.Cleanup(web.Close)
		p.write(t, "reader.json", string(key), 0o600)
		p.yaml = healthy + "    service_account: {file: reader.json, endpoint: '" + web.URL +
			"/'}\n    limits: [{bucket: default, units: 900000, window: 24h}]\n" +
			"ingest: {regions: [US], schedule: '0 0 1 1 *'}\n"
		return web
	}
	start(1_000_000)
	wantChecks(t, p.examine(t))
	web := start(20_000)
	r := p.examine(t)
	wantChecks(t, r, "limit-google")
	if len(r.Findings) != 1 ||
		!strings.Contains(r.Findings[0].What, "Google gives its project 20000") {
		t.Errorf("%+v", r.Findings)
	}
	must(t, os.Chmod(p.dir+"/reader.json", 0o644))
	wantChecks(t, p.examine(t), "key-exposed", "limit-google")
	web.Close()
	wantChecks(t, p.examine(t), "google", "key-exposed", "limit-default")
}
