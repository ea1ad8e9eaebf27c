package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
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
	"quotabudget/internal/daemon"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// long makes the daemons crash for two minutes instead of some seconds: make soak.
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
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	dir := t.TempDir()
	path := configFile(t, fmt.Sprintf(crashing, redistest.Start(t, redistest.Options{}).URL(),
		filepath.Join(dir, "catalog.db"), units))
	f.env = []string{"YOUTUBE_ENDPOINT=" + web.URL, "YOUTUBE_API_KEY=any", "QUOTA_CONFIG=" + path}
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

// expectDone checks the claim of every tick between two moments, and calls check with each. The
// tick is done, or its chart is complete: a daemon killed then could not mark it.
func (f *fleet) expectDone(l quota.Claims, charts []catalog.Chart, from, to time.Time,
	check func(tick string)) (ticks int) {
	f.Helper()
	whole := make(map[string]bool)
	for _, chart := range charts {
		whole[chart.Run] = whole[chart.Run] || !chart.CompletedAt.IsZero()
	}
	lanes, err := f.cfg.Lanes()
	must(f, err)
	for _, lane := range lanes {
		for tick := range lane.Ticks(from, to) {
			if f.overtaken(tick.ID()) {
				continue
			}
			ticks++
			state, err := l.Claim(f.Context(),
				quota.Claim{Credential: "key1", Name: tick.ID(), Holder: "test", TTL: time.Minute})
			if err != nil || state != quota.ClaimDone && !whole[tick.ID()] {
				f.Errorf("%s is not done: %v, %v", tick.ID(), state, err)
			}
			check(tick.ID())
		}
	}
	return ticks
}

// overtaken reports whether a daemon skipped the tick because its lane was five leases late, as can
// happen on a busy machine.
func (f *fleet) overtaken(tick string) bool {
	return f.logged(`a later one is due" tick=` + regexp.QuoteMeta(tick) + "\n")
}

// logged reports whether a daemon has logged a line that matches a pattern.
func (f *fleet) logged(pattern string) bool {
	line := regexp.MustCompile(pattern)
	return slices.ContainsFunc(slices.Concat(f.procs, f.dead), func(p *process) bool {
		return line.MatchString(p.stderr.String())
	})
}

// expectWindows checks the ledger's entries against the limit of any five seconds, and returns
// their sum.
func (f *fleet) expectWindows(l *ledger.Ledger, units int64) (sum int64) {
	f.Helper()
	entries, err := l.Entries(f.Context(), quota.Query{Credential: "key1",
		Bucket: quota.DefaultBucket})
	must(f, err)
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

// TestCrashes: three daemons on one Redis and one catalogue, one of them killed every one to three
// seconds. Every tick runs exactly once. The only pages bought twice are those in flight when their
// buyer was killed. It runs alone: on two cores, the daemons of two such tests at once may be too
// slow for their schedule, and then never end the ticks that are behind.
func TestCrashes(t *testing.T) {
	const units = 10_000
	f := launch(t, units)
	from, to := f.crash()

	l, c := f.open()
	runs := make(map[string]int)
	var stored, whole int64
	charts := f.charts(c)
	for _, chart := range charts {
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
	ticks := f.expectDone(l, charts, from, to, func(tick string) {
		if runs[tick] != 1 {
			t.Errorf("%s has %d charts", tick, runs[tick])
		}
	})
	charged, bought := f.expectWindows(l, units), f.standin.Counts().Total["default"]
	again, lost := f.expectNoneTwice(l, charts)
	asked := int64(len(f.asked()))
	t.Logf("%d kills, %d takeovers, %d ticks, %d charts of %d pages; %d units charged, "+
		"%d pages asked for, %d billed, %d asked for again after a kill", len(f.kills),
		f.takeovers(), ticks, whole, stored, charged, asked, bought, again)
	if asked != stored+int64(again+len(lost)) || bought < stored || bought > asked {
		t.Errorf("%d pages were requested, %d of them again; %d were billed, %d are stored", asked,
			again, bought, stored)
	}
	// A lost page may belong to a tick that was not due to be done yet, because a lane is up to
	// three seconds behind the schedule, or to one missed before the start, which the next tick
	// makes up for.
	for _, p := range lost {
		scheduled := p.tick[strings.LastIndex(p.tick, "/")+1:]
		if scheduled >= from.UTC().Format(time.RFC3339) &&
			scheduled < to.Add(-3*time.Second).UTC().Format(time.RFC3339) {
			t.Errorf("%v was asked for and is not there", p)
		}
	}
	// a kill ends one process with at most daemon.MaxRuns runs, each with one page in flight
	if most := int64(len(f.kills)) * daemon.MaxRuns; int64(again) > most || charged < asked ||
		charged-asked > most {
		t.Errorf("%d units were charged, %d pages were asked for", charged, asked)
	}
	if ticks < 10 { // of about 40; a busy machine does fewer
		t.Errorf("only %d ticks", ticks)
	}
}

// takeovers returns how often a tick was taken over, by the logs of all daemons.
func (f *fleet) takeovers() (n int) {
	for _, p := range slices.Concat(f.procs, f.dead) {
		n += strings.Count(p.stderr.String(), "tick taken over")
	}
	return n
}

// page is one of the two pages of a tick's chart.
type page struct {
	tick  string
	first bool
}

// expectNoneTwice checks every requested page against the catalogue. A stored page is not requested
// again. A page that is not stored is requested again only after a kill, or if a daemon that
// stalled on a busy machine lost its lease. It returns the number of repeated requests, and of
// requested pages that are not stored. A request belongs to the last tick charged in its region,
// because lanes do not overlap themselves.
func (f *fleet) expectNoneTwice(l *ledger.Ledger, charts []catalog.Chart) (again int, lost []page) {
	f.Helper()
	entries, err := l.Entries(f.Context(), quota.Query{Credential: "key1",
		Bucket: quota.DefaultBucket})
	must(f, err)
	stored := make(map[page]time.Time)
	for _, c := range charts {
		stored[page{c.Run, true}] = c.StartedAt
		if !c.CompletedAt.IsZero() {
			stored[page{c.Run, false}] = c.CompletedAt
		}
	}
	asked := make(map[page]time.Time)
	for _, r := range f.asked() {
		p := page{first: r.first}
		for _, e := range entries {
			if e.Labels[quota.LabelRegion] == r.region && !e.At.After(r.at) {
				p.tick = e.Labels[quota.LabelRun]
			}
		}
		if since, there := stored[p]; there && r.at.After(since) {
			f.Errorf("%v: requested at %v, stored since %v", p, r.at, since)
		}
		if before, ok := asked[p]; ok {
			again++
			if !slices.ContainsFunc(f.kills, func(kill time.Time) bool {
				return kill.After(before) && kill.Before(r.at)
			}) && !f.logged(regexp.QuoteMeta(p.tick)+` .*cause="the lease was lost"`) {
				f.Errorf("%v: requested at %v and at %v without a kill in between", p, before,
					r.at)
			}
		}
		asked[p] = r.at
	}
	for p := range asked {
		if _, there := stored[p]; !there {
			lost = append(lost, p)
		}
	}
	return again, lost
}

// TestCrashesWhenShort is TestCrashes with fewer units than the schedule needs. No limit is
// exceeded, and every tick is done, possibly by a denial.
func TestCrashesWhenShort(t *testing.T) {
	const units = 12 // of 16 that the schedule needs
	f := launch(t, units)
	from, to := f.crash()
	l, c := f.open()
	charts := f.charts(c)
	ticks := f.expectDone(l, charts, from, to, func(string) {})
	charged, bought := f.expectWindows(l, units), f.standin.Counts().Total["default"]
	again, _ := f.expectNoneTwice(l, charts)
	asked := int64(len(f.asked()))
	t.Logf("%d kills, %d takeovers, %d ticks, %d units charged, %d pages asked for, %d billed, "+
		"%d asked for again", len(f.kills), f.takeovers(), ticks, charged, asked, bought, again)
	if most := int64(len(f.kills)) * daemon.MaxRuns; bought > asked || int64(again) > most ||
		charged < asked || charged-asked > most {
		t.Errorf("%d units were charged, %d pages were asked for, %d billed", charged, asked,
			bought)
	}
}
