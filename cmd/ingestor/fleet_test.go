package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/standin"
)

const crashing = `
ledger: %s
catalog: sqlite://%s
credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    limits:
      - {bucket: default, units: %d, window: 5s}
      - {bucket: default, units: 1000000000, window: day, timezone: America/Los_Angeles}
ingest:
  regions: [US, GB, DE, FR, IN, BR, AU, CA]
  pages: 2
  schedule: "@every 5s"
  stagger: 600ms
  lease: 6s
  listen: ""
`

// fleet is three daemons on one Redis, one of which is killed at a time.
type fleet struct {
	*testing.T
	cfg     *config.Config
	env     []string
	procs   []*process
	dead    []*process
	kills   []time.Time
	standin *standin.YouTube

	mu   sync.Mutex
	sent []request
}

// request is a request for one page of a chart.
type request struct {
	at     time.Time
	region string
	first  bool // the first page, not the second
}

// ServeHTTP records the request and passes it to the stand-in.
func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f.mu.Lock()
	f.sent = append(f.sent, request{time.Now(), q.Get("regionCode"), !q.Has("pageToken")})
	f.mu.Unlock()
	f.standin.ServeHTTP(w, r)
}

// asked returns the requests so far, in order.
func (f *fleet) asked() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

// launch starts the daemons with the given units in any five seconds.
func launch(t *testing.T, units int64) *fleet {
	t.Helper()
	f := &fleet{T: t, standin: &standin.YouTube{Latency: 250 * time.Millisecond,
		Limits: map[string]int64{"default": 1e9}}}
	endpoint, dir := listening(t, f), t.TempDir()
	path := configFile(t, fmt.Sprintf(crashing, redistest.Start(t, redistest.Options{}).URL(),
		filepath.Join(dir, "catalog.db"), units))
	f.env = []string{"YOUTUBE_ENDPOINT=" + endpoint, "YOUTUBE_API_KEY=any", "QUOTA_CONFIG=" + path}
	var err error
	if f.cfg, err = config.Load(t.Context(), path, func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.start(len(f.procs))
	}
	return f
}

// start starts a daemon by its number, also in place of a killed one. Its log level includes ticks
// found done.
func (f *fleet) start(i int) {
	f.Helper()
	if i == len(f.procs) {
		f.procs = append(f.procs, nil)
	}
	f.procs[i] = begin(f.T, f.env, "ingestor", "run", "--log-level", "debug")
}

// crash waits until the first daemon has done a tick, then for a while kills one daemon after
// another, each at a random moment, and restarts it. The other two run meanwhile, because a tick
// that comes while no daemon runs is lost. It returns the period within which all ticks must be
// done.
func (f *fleet) crash() (from, to time.Time) {
	f.Helper()
	f.procs[0].await(f.T, "tick done")
	span := 12 * time.Second
	if *long {
		span = 2 * time.Minute
	}
	from = time.Now()
	seed := uint64(time.Now().UnixNano())
	f.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for end := time.Now().Add(span); time.Now().Before(end) || len(f.kills) < 3; {
		for _, p := range f.procs {
			p.await(f.T, "lanes run")
		}
		time.Sleep(time.Second + time.Duration(random.Int64N(int64(2*time.Second))))
		i := random.IntN(len(f.procs))
		f.kills = append(f.kills, time.Now())
		f.procs[i].signal(f.T, syscall.SIGKILL)
		<-f.procs[i].ended
		f.dead = append(f.dead, f.procs[i])
		f.start(i)
	}
	return from, f.rest()
}

// rest waits until every tick up to the end of the next lease has ended, including those of killed
// daemons, then stops the daemons. It returns the end of that lease.
func (f *fleet) rest() time.Time {
	settled := time.Now().Add(f.cfg.Daemon.Lease)
	f.awaitOutcomes(settled)
	for _, p := range f.procs {
		p.signal(f.T, syscall.SIGTERM)
	}
	for _, p := range f.procs {
		if code := p.code(); code != 0 {
			f.Errorf("exit code %d: %s", code, p.stderr.String())
		}
	}
	return settled
}

// tickEnd matches the line that a daemon logs at the end of a tick.
var tickEnd = regexp.MustCompile(
	`msg="tick (?:done|denied|failed|left out|is done)[^"]*" tick=trending/([A-Z]+)/(\S+)`)

// awaitOutcomes waits until each lane of each daemon has ended a tick at or after a moment. A lane
// runs its ticks in order, and only one daemon may know of a tick lost in a crash. A busy machine
// may need long.
func (f *fleet) awaitOutcomes(at time.Time) {
	f.Helper()
	end := time.Now().Add(5 * time.Minute)
	for i, p := range f.procs {
		for reached := make(map[string]bool); len(reached) < len(f.cfg.Ingest.Regions); {
			if time.Now().After(end) {
				f.Fatalf("daemon %d: only %v have come to %v:\n%s", i, reached, at,
					p.stderr.String())
			}
			time.Sleep(100 * time.Millisecond)
			for _, found := range tickEnd.FindAllStringSubmatch(p.stderr.String(), -1) {
				tick, err := time.Parse(time.RFC3339, found[2])
				must(f, err)
				if !tick.Before(at) {
					reached[found[1]] = true
				}
			}
		}
	}
}

// open opens the ledger and the catalogue that the daemons share.
func (f *fleet) open() (*ledger.Ledger, *catalog.Catalog) {
	f.Helper()
	l, err := ledger.Open(f.Context(), f.cfg.Ledger)
	must(f, err)
	f.Cleanup(func() { l.Close() })
	c, err := catalog.Open(f.Context(), f.cfg.Catalog)
	must(f, err)
	f.Cleanup(func() { c.Close() })
	return l, c
}

// charts returns all charts of the regions, also incomplete ones.
func (f *fleet) charts(c *catalog.Catalog) (all []catalog.Chart) {
	f.Helper()
	for _, region := range f.cfg.Ingest.Regions {
		charts, err := c.Charts(context.Background(), string(region), 0)
		must(f, err)
		all = append(all, charts...)
	}
	return all
}

// logged reports whether a daemon has logged a line that matches a pattern.
func (f *fleet) logged(pattern string) bool {
	line := regexp.MustCompile(pattern)
	return slices.ContainsFunc(slices.Concat(f.procs, f.dead), func(p *process) bool {
		return line.MatchString(p.stderr.String())
	})
}

// takeovers returns how often a tick was taken over, by the logs of all daemons.
func (f *fleet) takeovers() (n int) {
	for _, p := range slices.Concat(f.procs, f.dead) {
		n += strings.Count(p.stderr.String(), "tick taken over")
	}
	return n
}
