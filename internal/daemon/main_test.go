package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/catalog"
	"quotabudget/internal/costs"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ingest"
	"quotabudget/internal/ledger"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

const eight = "US GB DE FR IN BR AU CA"

// perPage is the number of videos per page. These tests check which lane gets which page and when,
// not the page's content.
const perPage = "3"

// pageOf returns the page number of a page token, for pages of perPage videos.
var pageOf = map[string]int{"": 1, "CAMQAA": 2, "CAYQAA": 3, "CAkQAA": 4}

// chartPages is the number of pages of each chart.
var chartPages = map[string]int{"US": 2, "GB": 2, "DE": 2, "FR": 2, "IN": 2, "BR": 2, "AU": 2,
	"CA": 2, "JP": 4, "KR": 4}

// small returns charts with chartPages pages.
var small = sync.OnceValue(func() *standin.Charts {
	totals := make(map[string]int)
	for region, pages := range chartPages {
		totals[region] = 3*pages - 2
	}
	return standin.Generator{Totals: totals, Days: 1}.Charts()
})

// env holds what the daemons share: the upstream, one ledger and one catalogue, in a
// testing/synctest bubble, where time passes only when all goroutines wait.
type env struct {
	*testing.T
	dir     string
	limits  []quota.Limit
	paces   []quota.Limit
	standin standin.YouTube
	procs   []*proc // all opened processes; at ends them
	look    *proc   // a process for checks, never killed

	mu    sync.Mutex
	hook  func(p *proc, r *http.Request) // runs before the stand-in sees a request
	asked []string                       // "15:04:05 US 1" for each answered request
	log   []string
	lost  []string // "2 trending/US 21:00: why" for ticks that were reported as missed
}

// noon in Los Angeles is five hours after the upstream's reset, and seven or eight before UTC's
// evening.
var noon = time.Date(2026, time.June, 1, 19, 0, 0, 0, time.UTC)

// atNoon runs a test with enough units, from a second before noon on.
func atNoon(t *testing.T, test func(*env)) {
	t.Helper()
	at(t, noon.Add(-time.Second), 10_000, test)
}

// at runs a parallel test in a bubble whose time begins at a moment.
func at(t *testing.T, begin time.Time, units int64, test func(*env)) {
	t.Helper()
	t.Parallel()
	dir, charts := t.TempDir(), small()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(begin))
		day, err := quota.ParseWindow("day", "America/Los_Angeles")
		must(t, err)
		w := &env{T: t, dir: dir, limits: []quota.Limit{{Bucket: quota.DefaultBucket,
			Units: units, Window: day}}}
		w.standin.Charts = charts
		defer func() {
			for _, p := range w.procs {
				p.end()
			}
			if t.Failed() {
				t.Log(strings.Join(w.log, ""))
			}
		}()
		w.look = w.open()
		test(w)
	})
}

// proc simulates one daemon's process.
type proc struct {
	*env
	ledger  *ledger.Ledger
	catalog *catalog.Catalog
	config  *daemon.Config
	sweep   *daemon.Sweep // work of the process's lanes
	metrics *daemon.Metrics
	daemon  *daemon.Daemon
	handler http.Handler
	mute    atomic.Bool // its claims do not reach the ledger
	doomed  atomic.Bool // is killed when it marks a tick done
	dead    atomic.Bool // killed: its calls no longer reach ledger or upstream
	stop    context.CancelFunc
	reload  chan struct{}
	load    func(context.Context) (*daemon.Config, error)
	ended   chan error
	calls   map[string]int // of the ledger
}

// open wires a process with lanes that run hourly.
func (w *env) open(lanes ...share.Lane) *proc {
	w.Helper()
	p := &proc{env: w, metrics: daemon.NewMetrics(), reload: make(chan struct{}),
		ended: make(chan error, 1), calls: make(map[string]int)}
	var err error
	p.ledger, err = ledger.OpenFile(w.Context(), filepath.Join(w.dir, "ledger.db"))
	must(w, err)
	p.catalog, err = catalog.Open(w.Context(), "sqlite://"+filepath.Join(w.dir, "catalog.db"))
	must(w, err)
	table := costs.Default()
	prices := make(map[string][]quota.Cost)
	for _, m := range table.Methods() {
		prices[m.ID] = m.Costs
	}
	p.ledger.Store = killableStore{p.ledger.Store, p}
	p.ledger.Observe = func(op ledger.Operation) {
		p.metrics.Observe(op)
		p.count(op.Name)
	}
	ledger := killable{p.ledger, p}
	log := slog.New(slog.NewTextHandler(p, nil))
	budget := &quota.Budget{Ledger: ledger, Credential: "key1", Limits: w.limits, Paces: w.paces,
		Prices: prices, Log: log}
	gate, err := meter.New("https://upstream/", table, budget,
		func() (string, error) { return "some-key", nil }, log)
	must(w, err)
	gate.Base = p.metrics.Measure(p, table.Method)
	client, err := youtube.New(w.Context(), "https://upstream/", gate)
	must(w, err)
	p.sweep = &daemon.Sweep{Sweep: ingest.Sweep{Client: client, Catalog: p.catalog, Budget: budget,
		Day: table.Buckets()[0].Reset, Now: time.Now, Log: log}}
	p.config = &daemon.Config{Lanes: p.sweep.Lanes(lanes), Claims: ledger, Spending: ledger, Lease: 2 * time.Minute,
		Grace: 20 * time.Second}
	w.procs = append(w.procs, p)
	return p
}

// start runs the daemon.
func (p *proc) start() *proc {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	d := &daemon.Daemon{Config: p.config, Reload: p.reload, Load: p.load,
		Holder: quota.NewID(time.Now()),
		Log:    slog.New(slog.NewTextHandler(p, nil)), Metrics: p.metrics, Missed: p.addMissed}
	p.daemon, p.handler = d, d.Handler()
	go func() {
		defer close(p.ended)
		p.ended <- d.Run(ctx)
	}()
	return p
}

// pair opens two processes with the same lanes.
func (w *env) pair(lanes ...share.Lane) (a, b *proc) {
	w.Helper()
	return w.open(lanes...), w.open(lanes...)
}

// restart starts a daemon that makes up for missed ticks.
func (w *env) restart(lanes ...share.Lane) *proc {
	p := w.open(lanes...)
	p.sweep.CatchUp = true
	return p.start()
}

// end stops the daemon if it is running, waits for it to exit and closes its files.
func (p *proc) end() {
	p.Helper()
	if p.stop != nil {
		p.stop()
		if err := <-p.ended; err != nil && !p.dead.Load() {
			p.Error(err)
		}
	}
	if err := errors.Join(p.catalog.Close(), p.ledger.Close()); err != nil {
		p.Error(err)
	}
}

// stopAfter waits for d, then stops the daemon.
func (p *proc) stopAfter(d time.Duration) {
	p.Helper()
	time.Sleep(d)
	p.end()
}

// crash simulates SIGKILL.
func (p *proc) crash() {
	p.dead.Store(true)
	p.stop()
}

var errDead = fmt.Errorf("%w: killed", quota.ErrUnreachable)

// RoundTrip passes a request to the stand-in. A socket would keep the bubble's time from passing.
func (p *proc) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	hook := p.hook
	p.mu.Unlock()
	if hook != nil {
		hook(p, r)
	}
	if p.dead.Load() {
		return nil, errors.New("killed")
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	rec := httptest.NewRecorder()
	query := r.URL.Query()
	query.Set("maxResults", perPage)
	short := r.Clone(r.Context())
	short.URL.RawQuery = query.Encode()
	p.standin.ServeHTTP(rec, short)
	p.mu.Lock()
	p.asked = append(p.asked, fmt.Sprintf("%s %s %d", time.Now().UTC().Format("15:04:05"),
		query.Get("regionCode"), pageOf[query.Get("pageToken")]))
	p.mu.Unlock()
	if p.dead.Load() {
		return nil, errors.New("killed")
	}
	return rec.Result(), nil
}

// atOnce counts concurrent work.
type atOnce struct{ now, most atomic.Int64 }

func (a *atOnce) during(work func()) {
	if n := a.now.Add(1); n > a.most.Load() {
		a.most.Store(n)
	}
	work()
	a.now.Add(-1)
}

// slow delays a response.
func slow(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

// Write keeps the log for checks and failures.
func (p *proc) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, string(line))
	return len(line), nil
}

// set changes the hook.
func (w *env) set(hook func(*proc, *http.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = hook
}

// lanes returns the lanes of a job with a schedule in a zone, staggered by step, of two pages
// each.
func lanes(t testing.TB, spec, zone, regions string, step time.Duration) []share.Lane {
	t.Helper()
	where, err := time.LoadLocation(zone)
	must(t, err)
	s, err := schedule.Parse(spec, where)
	must(t, err)
	var all []share.Lane
	for i, region := range strings.Fields(regions) {
		all = append(all, share.Lane{
			Lane: schedule.Lane{LaneID: schedule.LaneID{Job: "trending", Region: region}, Schedule: s,
				Offset: time.Duration(i) * step},
			Zone: where, Pages: 2, Weight: 1,
		})
	}
	return all
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// killable is the ledger of a process that can die.
type killable struct {
	*ledger.Ledger
	p *proc
}

// count counts a call of the ledger.
func (p *proc) count(operation string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[operation]++
}

// takeCalls returns the number of ledger calls by kind since its last call.
func (p *proc) takeCalls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = make(map[string]int)
	return calls
}

func (m killable) Time(ctx context.Context) (time.Time, error) {
	m.p.count("time")
	return m.Ledger.Time(ctx)
}

func (m killable) Claim(ctx context.Context, c quota.Claim) (quota.ClaimState, error) {
	if m.p.mute.Load() {
		return 0, errDead
	}
	return m.Ledger.Claim(ctx, c)
}

func (m killable) Finish(ctx context.Context, c quota.Claim, done bool) error {
	if done && m.p.doomed.Load() {
		m.p.crash()
	}
	return m.Ledger.Finish(ctx, c, done)
}

// killableStore is the store of a process that a test can kill: a dead process changes nothing.
type killableStore struct {
	ledger.Store
	p *proc
}

func (m killableStore) Update(ctx context.Context, scope quota.Scope,
	decide func(*quota.Account) (quota.Change, error)) error {
	if m.p.dead.Load() {
		return errDead
	}
	return m.Store.Update(ctx, scope, decide)
}
