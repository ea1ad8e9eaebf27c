package doctor_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/doctor"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// faults lists setups with at most one fault each, and the check that must find the fault.
var faults = []struct {
	check string
	level doctor.Level
	plant func(*testing.T, *plant)
}{
	{"", "", func(*testing.T, *plant) {}},
	{"", "", onRedis(func(*testing.T, *plant, *redistest.Server) {})},
	// a folder shared by a group, inside a folder with the sticky bit
	{"", "", func(t *testing.T, p *plant) {
		must(t, os.MkdirAll(p.dir+"/all/shared", 0o700))
		p.ledger = "sqlite://" + p.dir + "/all/shared/ledger.db"
		p.examine(t)
		chmod(t, p.dir+"/all", 0o777|os.ModeSticky)
		chmod(t, p.dir+"/all/shared", 0o770|os.ModeSetgid)
		chmod(t, p.dir+"/all/shared/ledger.db", 0o660)
	}},
	// credentials may share a key if their limits add up to the account's limit in each bucket
	{"", "", sharing("{bucket: default, units: 1000, window: 24h}",
		"{bucket: default, units: 9000, window: day}")},
	{"key-shared", doctor.Warning, sharing("{bucket: default, units: 1001, window: 24h}",
		"{bucket: default, units: 9000, window: 24h}")},
	{"key-shared", doctor.Warning, sharing("{bucket: default, units: 1000, window: 24h}",
		"{bucket: default, units: 900, window: 1h}")},
	{"", "", sharing("{bucket: default, units: 1000, window: 24h}", // neither may use the other's
		"{bucket: search_list, units: 100, window: 24h}")},
	{"key-shared", doctor.Warning, sharing(
		"{bucket: default, units: 1, window: 24h}, {bucket: search_list, units: 10, window: 24h}",
		"{bucket: default, units: 1, window: 24h}, {bucket: search_list, units: 91, window: 24h}")},
	// methods that may pass without the ledger
	{"unmetered", doctor.Warning,
		says(healthy + "    when_unreachable: {open: [youtube.videos.list]}\n")},
	{"", "", says(healthy + "    when_unreachable: {open: [youtube.videos.list], at_most: 5}\n")},
	{"config", doctor.Error, says("\ncredentials: [{name: a, modus: enforce}]\n")},
	{"ledger", doctor.Error, func(t *testing.T, p *plant) {
		s := redistest.Start(t, redistest.Options{})
		s.Kill()
		p.ledger = s.URL()
	}},
	{"ledger", doctor.Error, func(t *testing.T, p *plant) {
		p.write(t, "ledger.db", strings.Repeat("no database ", 100), 0o600)
	}},
	{"redis-role", doctor.Error, onRedis(func(t *testing.T, p *plant, s *redistest.Server) {
		host, port, _ := strings.Cut(s.Addr, ":")
		replica := redistest.Start(t, redistest.Options{AOF: true, Args: []string{
			"--replicaof", host, port}})
		p.ledger = replica.URL()
	})},
	{"redis-eviction", doctor.Error, onRedis(
		func(t *testing.T, _ *plant, s *redistest.Server) {
			do(t, s, "config", "set", "maxmemory", "1gb")
			do(t, s, "config", "set", "maxmemory-policy", "allkeys-lru")
		})},
	{"redis-eviction", doctor.Warning, redisDoes("config set maxmemory-policy volatile-ttl")},
	{"redis-memory", doctor.Warning, redisDoes("config set maxmemory 1100kb")},
	{"redis-memory", doctor.Error, redisDoes("config set maxmemory 1kb")},
	{"redis-evicted", doctor.Warning, onRedis(
		func(t *testing.T, _ *plant, s *redistest.Server) {
			do(t, s, "config", "set", "maxmemory-policy", "allkeys-lru")
			do(t, s, "set", "cache:page", strings.Repeat("x", 1<<20))
			do(t, s, "config", "set", "maxmemory", "1kb")
			do(t, s, "eval", "return redis.call('DBSIZE')", "0") // excess keys are evicted now
			do(t, s, "config", "set", "maxmemory", "0")
			do(t, s, "config", "set", "maxmemory-policy", "noeviction")
		})},
	{"redis-persistence", doctor.Warning, redisDoes("config set appendonly no")},
	{"redis-fsync", doctor.Warning, redisDoes("config set appendfsync no")},
	{"redis-replicas", doctor.Warning, onRedis(
		func(t *testing.T, _ *plant, s *redistest.Server) {
			host, port, _ := strings.Cut(s.Addr, ":")
			redistest.Start(t, redistest.Options{Args: []string{"--replicaof", host, port}})
			c := redis.NewClient(&redis.Options{Addr: s.Addr})
			defer c.Close()
			for !strings.Contains(c.Info(t.Context(), "replication").Val(), "connected_slaves:1") {
				if t.Context().Err() != nil {
					t.Fatal("no replica came")
				}
			}
		})},
	{"redis-rights", doctor.Error, onRedis(func(t *testing.T, p *plant, s *redistest.Server) {
		do(t, s, "acl", "setuser", "q", "on", ">pw", "~quota:*", "+@all", "-zadd", "-hset", "-scan")
		p.ledger = strings.Replace(s.URL(), "redis://", "redis://q:pw@", 1)
	})},
	{"clock", doctor.Warning, func(t *testing.T, p *plant) {
		s := redistest.Start(t, redistest.Options{AOF: true, Clock: true})
		s.SetNow(t, time.Now().Add(-time.Minute))
		p.ledger = s.URL()
	}},
	{"clock-entries", doctor.Error, func(t *testing.T, p *plant) { charge(t, p, 2*time.Hour) }},
	{"entries", doctor.Error, func(t *testing.T, p *plant) {
		charge(t, p, 0)
		exec(t, p, "UPDATE entries SET units = units + 1")
	}},
	{"suspension", doctor.Warning, func(t *testing.T, p *plant) {
		charge(t, p, 0)
		p.yaml += "ingest: {regions: [US], schedule: '0 0 1 1 *'}\n" // none is lost
		l, err := ledger.OpenFile(t.Context(), p.file())
		must(t, err)
		defer l.Close()
		err = l.Suspend(context.Background(), quota.Suspension{Credential: "default",
			Bucket: "default", Until: time.Now().Add(time.Hour)})
		must(t, err)
	}},
	// a path that begins with two slashes is absolute
	{"", "", func(t *testing.T, p *plant) { p.ledger = "sqlite:///" + p.file() }},
	{"ledger-relative", doctor.Warning, func(t *testing.T, p *plant) {
		here, err := filepath.Abs(".")
		must(t, err)
		path, err := filepath.Rel(here, p.file())
		must(t, err)
		p.variable = "sqlite:" + path // a path in the file is relative to it
	}},
	{"file-rights", doctor.Warning, func(t *testing.T, p *plant) {
		charge(t, p, 0)
		must(t, os.Chmod(p.file(), 0o666))
	}},
	{"file-rights", doctor.Warning, func(t *testing.T, p *plant) { p.mode = 0o666 }},
	{"file-rights", doctor.Warning, func(t *testing.T, p *plant) { chmod(t, p.dir, 0o777) }},
	{"file-rights", doctor.Warning, func(t *testing.T, p *plant) {
		chmod(t, p.dir, 0o777|os.ModeSticky) // a missing file can still be created
	}},
	{"file-rights", doctor.Warning, func(t *testing.T, p *plant) { // a folder above it
		must(t, os.Mkdir(p.dir+"/open", 0o700))
		must(t, os.Mkdir(p.dir+"/open/own", 0o700))
		p.ledger = "sqlite://" + p.dir + "/open/own/ledger.db"
		chmod(t, p.dir+"/open", 0o777)
	}},
	{"file-rights", doctor.Warning, func(t *testing.T, p *plant) { // where a link leads
		must(t, os.Mkdir(p.dir+"/open", 0o700))
		charge(t, p, 0)
		must(t, os.Rename(p.file(), p.dir+"/open/ledger.db"))
		must(t, os.Symlink(p.dir+"/open/ledger.db", p.file()))
		chmod(t, p.dir+"/open", 0o777)
	}},
	{"exhausted", doctor.Warning, func(t *testing.T, p *plant) {
		spend(t, p, "search_list", 95, 0) // the rest is kept for people
	}},
	{"sqlite-journal", doctor.Warning, func(t *testing.T, p *plant) {
		charge(t, p, 0)
		exec(t, p, "PRAGMA journal_mode = delete")
	}},
	{"disk", doctor.Warning, func(_ *testing.T, p *plant) { p.options.MinFree = 1 << 60 }},
	{"key-missing", doctor.Error, says("\ncredentials: [{name: a, api_key: {file: none}}]\n")},
	{"notify-secret", doctor.Warning,
		says(healthy + "notify: {url: 'https://h/', secret: {file: none}}\n")},
	{"key-exposed", doctor.Warning, func(t *testing.T, p *plant) {
		p.write(t, "key", "AIza-of-nobody", 0o644)
	}},
	{"key-shared", doctor.Warning, says(healthy + "  - {name: b, api_key: {file: key}}\n" +
		"ingest: {credential: b}\n")},
	{"endpoint", doctor.Warning, says(healthy + "youtube: {endpoint: 'http://127.0.0.1:1/'}\n")},
	{"observe", doctor.Warning, says(healthy + "    mode: observe\n")},
	{"limit-default", doctor.Warning, says(healthy +
		"    limits: [{bucket: default, units: 1000000, window: 24h}]\n")},
	{"limit-missing", doctor.Warning, says(healthy +
		"  - {name: b, upstream: openai, api_key: {file: key}}\ningest: {credential: default}\n")},
	{"limit-headroom", doctor.Warning, says(healthy +
		"    limits: [{bucket: default, units: 9000, headroom: 9000, window: 24h}]\n" +
		"ingest: {regions: [US], schedule: '0 0 1 1 *'}\n")},
	{"schedule", doctor.Warning, says(healthy +
		"    limits: [{bucket: default, units: 50, window: 24h}]\n" +
		"ingest: {regions: [US, GB, DE, FR], schedule: '0 * * * *'}\n")},
	{"price-unlisted", doctor.Warning, func(t *testing.T, p *plant) {
		l, err := ledger.OpenFile(t.Context(), p.file())
		must(t, err)
		defer l.Close()
		b := quota.Budget{Ledger: l, Credential: "default", Unlimited: true}
		_, err = b.Charge(t.Context(), quota.Call{Bucket: "default", Units: 1,
			Labels: quota.Labels{quota.LabelUnlisted: "gpt-9"}})
		must(t, err)
	}},
	{"price-age", doctor.Warning, func(_ *testing.T, p *plant) {
		p.options.Now = time.Date(2026, 12, 17, 0, 0, 0, 0, time.UTC) // of 2026-11
	}},
	{"price-age", doctor.Warning, func(t *testing.T, p *plant) {
		text, err := os.ReadFile("../../costs/youtube.yaml")
		must(t, err)
		old := strings.NewReplacer("date: 2026", "date: 2021", "date: 2025", "date: 2020")
		p.write(t, "old.yaml", old.Replace(string(text)), 0o600)
		p.yaml += "costs: {file: old.yaml}\n"
	}},
	{"price-methods", doctor.Warning, func(t *testing.T, p *plant) {
		text, err := os.ReadFile("../../costs/youtube.yaml")
		must(t, err)
		var lines []string
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "youtube.captions.list:") {
				lines = append(lines, line)
			}
		}
		p.write(t, "short.yaml", strings.Join(lines, ""), 0o600)
		p.yaml += "costs: {file: short.yaml}\n"
	}},
}

// TestFaults: examine finds each planted fault at its level, and nothing else. For a healthy setup
// it reports one fact, about the ledger.
func TestFaults(t *testing.T) {
	for i, f := range faults {
		t.Run(fmt.Sprint(i+1, " ", f.check), func(t *testing.T) {
			t.Parallel()
			p := newPlant(t)
			f.plant(t, p)
			r := p.examine(t)
			var names []string
			for _, got := range r.Findings {
				names = append(names, fmt.Sprint(got.Check, " ", got.Level))
				if got.About == "" || got.What == "" || got.Why == "" || got.Do == "" {
					t.Errorf("says too little: %+v", got)
				}
				if strings.Contains(fmt.Sprint(got), "AIza-of-nobody") {
					t.Errorf("shows the key: %+v", got)
				}
			}
			names = slices.Compact(names)
			var want []string
			if f.check != "" {
				want = []string{fmt.Sprint(f.check, " ", f.level)}
			}
			if !slices.Equal(names, want) || r.OK != (want == nil) || r.Worst() != f.level ||
				r.OK && len(r.Facts) != 1 {
				t.Errorf("found %v, want %v: %+v", names, want, r)
			}
		})
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

// TestCluster: each master of a cluster is examined, because each has its own settings.
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
			t.Errorf("%s: reported about %s, want %s", f.Check, f.About, c.Masters[nth].Addr)
		}
	}
}

// TestGoogleLimits: with a service account, the limits that Google reports count, not the defaults.
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
