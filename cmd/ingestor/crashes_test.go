package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/youtube/youtubetest"
)

// long makes the daemons die for two minutes instead of some seconds: make soak.
var long = flag.Bool("long", false, "let the daemons die for two minutes")

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
  schedule: "@every 3s"
  stagger: 350ms
  lease: 3s
  listen: ""
`

// fleet is three daemons on one Redis, of which one at a time is killed.
type fleet struct {
	*testing.T
	cfg     *config.Config
	env     []string
	procs   []*process
	kills   int
	standin *youtubetest.Server
}

// launch starts the daemons with so many units in any five seconds.
func launch(t *testing.T, units int64) *fleet {
	t.Helper()
	f := &fleet{T: t, standin: &youtubetest.Server{Latency: 20 * time.Millisecond, Limits: map[string]int64{"default": 1e9}}}
	web := httptest.NewServer(f.standin)
	t.Cleanup(web.Close)
	dir := t.TempDir()
	path := filepath.Join(dir, "quota.yaml")
	text := fmt.Sprintf(crashing, redistest.Start(t, redistest.Options{}).URL(), filepath.Join(dir, "catalog.db"), units)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.env = []string{"YOUTUBE_ENDPOINT=" + web.URL, "YOUTUBE_API_KEY=any", "QUOTA_CONFIG=" + path}
	var err error
	if f.cfg, err = config.Load(path, func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.procs = append(f.procs, begin(t, f.env, "ingestor", "run"))
	}
	return f
}

// awaitTick waits until the first daemon has done a tick, a minute at most.
func (f *fleet) awaitTick() {
	f.Helper()
	given := make(chan struct{})
	timer := time.AfterFunc(time.Minute, func() { close(given) })
	defer timer.Stop()
	f.procs[0].stderr.await(f.T, "tick done", given)
}

// crash kills one daemon after the other for a while, each at a random moment, and starts it anew.
func (f *fleet) crash(span time.Duration) {
	seed := uint64(time.Now().UnixNano())
	f.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for end := time.Now().Add(span); time.Now().Before(end); f.kills++ {
		time.Sleep(time.Second + time.Duration(random.Int64N(int64(2*time.Second))))
		i := random.IntN(len(f.procs))
		f.procs[i].signal(f.T, syscall.SIGKILL)
		<-f.procs[i].ended
		f.procs[i] = begin(f.T, f.env, "ingestor", "run")
	}
}

// rest lets the claims of the dead be taken over, then ends the daemons, and returns a moment by which every tick was done.
func (f *fleet) rest() time.Time {
	time.Sleep(2 * f.cfg.Daemon.Lease)
	settled := time.Now().Add(-f.cfg.Daemon.Lease)
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

// open is the ledger and the catalogue that the daemons shared.
func (f *fleet) open() (daemon.ClaimsLedger, *catalog.Catalog) {
	f.Helper()
	l, err := ledger.Open(f.Context(), f.cfg.Ledger)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	c, err := catalog.Open(f.Context(), f.cfg.Catalog)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.Close() })
	return l.(daemon.ClaimsLedger), c
}

// charts are all charts of the regions, whole or not.
func (f *fleet) charts(c *catalog.Catalog) (all []catalog.Chart) {
	f.Helper()
	for _, region := range f.cfg.Ingest.Regions {
		charts, err := c.Charts(context.Background(), catalog.ChartKey{Region: string(region)}, 0)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, charts...)
	}
	return all
}

// expectDone holds every tick between two moments against the claims, and calls check with each.
func (f *fleet) expectDone(l quota.Claims, from, to time.Time, check func(tick string)) (ticks int) {
	f.Helper()
	lanes, err := lanesOf(f.cfg)
	if err != nil {
		f.Fatal(err)
	}
	for _, lane := range lanes {
		for tick := range lane.Ticks(from, to) {
			ticks++
			state, err := l.Claim(f.Context(), quota.Claim{Credential: "key1", Name: tick.ID(), Holder: "test", TTL: time.Minute})
			if err != nil || state != quota.ClaimDone {
				f.Errorf("%s is not done: %v, %v", tick.ID(), state, err)
			}
			check(tick.ID())
		}
	}
	return ticks
}

// expectWindows holds the entries of the ledger against the limit of any five seconds, and returns their sum.
func (f *fleet) expectWindows(l quota.Ledger, units int64) (sum int64) {
	f.Helper()
	entries, err := l.Entries(f.Context(), quota.Query{Credential: "key1", Bucket: quota.DefaultBucket})
	if err != nil {
		f.Fatal(err)
	}
	var inside int64
	first := 0
	for _, e := range entries {
		sum += e.Units
		inside += e.Units
		for ; !entries[first].At.After(e.At.Add(-5 * time.Second)); first++ {
			inside -= entries[first].Units
		}
		if inside > units {
			f.Errorf("%d units in the five seconds to %v", inside, e.At)
		}
	}
	return sum
}

// span is how long daemons are killed.
func span() time.Duration {
	if *long {
		return 2 * time.Minute
	}
	return 12 * time.Second
}

// TestCrashes: three daemons on one Redis and one catalogue, one of them killed every one to three seconds. Every tick runs exactly
// once; what is bought twice are pages that were under way when their buyer was killed, and nothing else.
func TestCrashes(t *testing.T) {
	const units = 10_000
	f := launch(t, units)
	f.awaitTick()
	from := time.Now()
	f.crash(span())
	to := f.rest()

	l, c := f.open()
	runs := make(map[string]int)
	var stored, whole int64
	for _, chart := range f.charts(c) {
		stored += int64(chart.Pages)
		if !chart.CompletedAt.IsZero() {
			runs[chart.Run]++
			whole++
		}
	}
	for run, n := range runs {
		if n != 1 {
			t.Errorf("%s has %d charts", run, n)
		}
	}
	ticks := f.expectDone(l, from, to, func(tick string) {
		if runs[tick] != 1 {
			t.Errorf("%s has %d charts", tick, runs[tick])
		}
	})
	charged, bought := f.expectWindows(l, units), f.standin.Counts().Total["default"]
	t.Logf("%d kills, %d ticks, %d charts of %d pages; %d units charged, %d billed: %d pages were under way at a kill and bought again, "+
		"%d charged and never sent", f.kills, ticks, whole, stored, charged, bought, bought-stored, charged-bought)
	// A kill takes one process, which has at most daemon.DefaultRuns runs, each with one page under way.
	most := int64(f.kills) * daemon.DefaultRuns
	if bought < stored || bought-stored > most {
		t.Errorf("%d pages were bought, %d are stored", bought, stored)
	}
	if charged < bought || charged-bought > most {
		t.Errorf("%d units were charged, %d were billed", charged, bought)
	}
	if ticks < 40 || f.kills < 3 {
		t.Errorf("only %d ticks and %d kills", ticks, f.kills)
	}
	f.expectTakeovers()
}

// expectTakeovers wants at least one in the logs of who is left, unless chance had it otherwise.
func (f *fleet) expectTakeovers() {
	n := 0
	for _, p := range f.procs {
		n += strings.Count(p.stderr.String(), "tick taken over")
	}
	f.Logf("%d takeovers by who was left", n)
}

// TestCrashesWhenShort: as above with fewer units than the schedule wants. No limit is passed, and every tick is done, be it by
// a denial.
func TestCrashesWhenShort(t *testing.T) {
	const units = 25 // of 40 that are wanted
	f := launch(t, units)
	f.awaitTick()
	from := time.Now()
	f.crash(span())
	to := f.rest()
	l, _ := f.open()
	ticks := f.expectDone(l, from, to, func(string) {})
	charged, bought := f.expectWindows(l, units), f.standin.Counts().Total["default"]
	t.Logf("%d kills, %d ticks, %d units charged, %d billed", f.kills, ticks, charged, bought)
	if bought > charged || charged-bought > int64(f.kills)*daemon.DefaultRuns {
		t.Errorf("%d units were charged, %d were billed", charged, bought)
	}
}
