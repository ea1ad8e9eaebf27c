package pages

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// The board says that all is well, who spent what, and what comes next.
func TestBoard(t *testing.T) {
	s := newStation(t)
	b := newBudget(s, 10_000)
	now := time.Now()
	s.store("US", "run1", now.Add(-3*time.Minute), named("a", "First", 1))
	b.charge(now.Add(-3*time.Minute), "youtube.videos.list", 4, "job=trending region=US")
	page := s.says("/", 200, "Every bucket lasts to its reset", "9,496 of 9,500 units left",
		"trending US 4", "As a table", "Untouched search_list 95 of 95",
		"US 3 min ago complete next", "GB – not fetched yet", "Next ticks", "trending in")
	for _, want := range []string{
		`role="img" aria-labelledby="burn-default-title burn-default-text"`,
		`<desc id="burn-default-text">9,496 of 9,500 units for scheduled charges are left at`,
		`href="/log"`, `href="/plan"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestBoard_Short: the headline names the short bucket, and the board lists what is left out.
func TestBoard_Short(t *testing.T) {
	s := newStation(t)
	b := newBudget(s, 560)
	ingest := &s.pages.Source().Config.Ingest // so often that some are left out at any time of day
	ingest.Schedule, ingest.Stagger = "@every 20s", time.Second
	b.charge(time.Now().Add(-time.Second), "youtube.videos.list", 60, "job=backfill")
	s.says("/", 200, "default is exhausted", "Left out until the reset", "0 of 60 units left",
		"backfill 60")
	must(t, b.Ledger.Suspend(t.Context(), quota.Suspension{Credential: "key1",
		Bucket: "search_list", Until: time.Now().Add(2 * time.Hour)}))
	s.pages.forecasts.at = time.Time{} // it is old
	page := s.says("/", 200, "default is exhausted default is exhausted (",
		"search_list is suspended until")
	if !strings.Contains(page.body, `class="suspended"`) {
		t.Error("the suspension is not drawn")
	}
}

// The large number is what can be spent now, by the limit that binds, although another is drawn.
func TestBoard_Binds(t *testing.T) {
	s := newStation(t)
	b := newBudget(s, 10_000)
	cred := &s.pages.Source().Config.Credentials[0]
	cred.Limits[1].Units = 6000 // in 24h; most of the day's limit is left
	calls := quota.Limit{Bucket: "default", Units: 3, Window: quota.Window{Concurrent: true}}
	cred.Limits = append(cred.Limits, calls)
	b.charge(time.Now().Add(-time.Second), "youtube.videos.list", 60, "job=backfill")
	page := s.says("/", 200, "5,440 of 5,500 units left now (24h)", "day 9,440 of 9,500 left")
	if !strings.Contains(page.body, ">9,440 of 9,500 units for scheduled charges are left at") {
		t.Errorf("the day is not drawn: %s", page.text())
	}
	must(t, b.Ledger.Suspend(t.Context(), quota.Suspension{Credential: "key1", Bucket: "default",
		Until: time.Now().Add(2 * time.Hour)}))
	s.pages.forecasts.at = time.Time{} // it is old
	s.says("/", 200, "0 of 5,500 units left now (suspended until ")
}

// TestBoard_Denied checks that the board names the jobs that were denied today.
func TestBoard_Denied(t *testing.T) {
	s := newStation(t)
	b := newBudget(s, 560) // 60 without the headroom
	for range 2 {
		d, err := b.Charge(t.Context(), quota.Call{Bucket: "default", Units: 60,
			Labels: quota.Labels{quota.LabelJob: "backfill"}})
		must(t, err)
		if !d.Allowed {
			b.Ledger.(interface{ Flush(time.Duration) }).Flush(time.Minute)
		}
	}
	const text = "key1: denied in the last 24h: 1 of backfill"
	s.says("/", 200, text)
	s.says("/?wall=1", 200, text)
}

// The board for a wall has the buckets that need a look first, and no table. Both boards say
// whether a daemon answers.
func TestBoard_Wall(t *testing.T) {
	s := newStation(t)
	b := newBudget(s, 10_000)
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.NotFound(w, r)
		}
	}))
	s.pages.Source().Config.Daemon.Listen = daemon.Listener.Addr().String()
	b.charge(time.Now().Add(-time.Second), "youtube.search.list", 95, "job=report")
	page := s.says("/?wall=1", 200, "search_list is exhausted", "The daemon is alive",
		"search_list 0 of 95 units left now (day) default 9,500 of 9,500 units left now",
		"US – not fetched yet")
	if strings.Contains(page.body, "<table") || !strings.Contains(page.body, `<body class="wall">`) {
		t.Errorf("it is no board for a wall: %s", page.text())
	}
	daemon.Close()
	s.pages.alive.at = time.Time{} // it is old
	if page := s.says("/", 200, "No daemon answers at", "For a wall", "Who spent it"); strings.
		Contains(page.body, `class="wall"`) {
		t.Error("the usual board is one for a wall")
	}
	s.pages.Private = func(r *http.Request) bool { return false }
	for _, path := range []string{"/", "/?wall=1"} {
		if text := s.says(path, 200, "US – not fetched yet").text(); strings.Contains(text, "daemon") ||
			strings.Contains(text, "units") {
			t.Errorf("%s: the public sees %s", path, text)
		}
	}
}

// A ledger that cannot be read takes nothing from the charts.
func TestBoard_NoLedger(t *testing.T) {
	s := newStation(t)
	b := newBudget(s, 10_000)
	s.store("US", "run1", time.Now(), named("a", "First", 1))
	must(t, b.Ledger.Close())
	s.says("/", 200, "The ledger cannot be read", "US just now complete")
}

// While the ledger is away, the board says what may be spent without it, and what waits to be
// recorded.
func TestBoard_Journal(t *testing.T) {
	s := newStation(t)
	b := newBudget(s, 10_000)
	from := s.pages.Source()
	cred := &from.Config.Credentials[0]
	from.Config.StateDir = t.TempDir()
	cred.Open, cred.AtMost = []string{"youtube.videos.list"}, 20
	b.Open, b.AtMost = cred.Open, cred.AtMost
	report.Journaled(b.Budget, from.Config, *cred)
	call := quota.Call{Method: "youtube.videos.list", Count: 3}
	spend := func() {
		t.Helper()
		if d, err := b.Charge(t.Context(), call); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	spend()
	if page := s.says("/", 200, "units left"); strings.Contains(page.text(), "without the ledger") {
		t.Errorf("the ledger is there: %s", page.text())
	}
	must(t, b.Ledger.Close())
	for range 2 {
		spend()
	}
	s.says("/", 200, "The ledger cannot be read", "key1 may spend 14 of 20 units of default "+
		"without the ledger; 2 calls wait in the journal, the oldest of 20")
}

// Without a token the public sees charts alone; and so does everybody where there is no ledger.
func TestPublic(t *testing.T) {
	s := newStation(t)
	s.says("/", 200, "Regions US")
	newBudget(s, 10_000)
	s.routes()
	s.pages.Private = func(r *http.Request) bool { return r.Header.Get("Authorization") != "" }
	page := s.says("/", 200, "Regions US")
	if strings.Contains(page.body, "/log") || strings.Contains(page.text(), "units") {
		t.Errorf("the public sees budgets: %s", page.text())
	}
	for _, path := range []string{"/log", "/plan"} {
		r := s.says(path, 401, "needs a token")
		if !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: %v", path, r.header)
		}
	}
}

func TestLog(t *testing.T) {
	s := newStation(t)
	b := newBudget(s, 10_000)
	s.routes()
	s.says("/log", 200, "Nothing was spent.")
	now := time.Now()
	b.charge(now.Add(-30*time.Hour), "youtube.videos.list", 7, "job=old")
	b.charge(now.Add(-2*time.Hour), "youtube.videos.list", 4, "job=trending region=US team=red")
	b.charge(now.Add(-time.Minute), "youtube.search.list", 3, "job=report")
	s.says("/log", 200, "trending default 4 1", "report search_list 3 1",
		"Total default 4 1 Total search_list 3 1", "The newest charges",
		"search_list 3 job report method youtube.search.list")
	s.says("/log?since=72h", 200, "old default 7 1", "Total default 11 2")
	s.says("/log?since=1h&by=method", 200,
		"youtube.search.list search_list 3 1 Total search_list 3 1")
	s.says("/log?by=team&bucket=default", 200, "red default 4 1 Total default 4 1")
	s.says("/log?by=region", 200, "US default 4 1", "(none) search_list 3 1")
	for query, want := range map[string]string{"by=A": "by: write job", "by=run": "by: write",
		"since=1y": "since: write 1h", "bucket=none": "bucket: no such bucket",
		"bucket=none/x": "bucket: no such bucket", "credential=x": "credential: "} {
		s.says("/log?"+query, 400, want)
	}
}

func TestPlan(t *testing.T) {
	s := newStation(t)
	newBudget(s, 10_000)
	s.routes()
	s.says("/plan", 200, "Every run gets its pages", "default 24h", "US trending", "to the reset")
	s.says("/plan?days=7", 200, "Every run gets its pages")
	s.says("/plan?days=8", 400, "from 1 to 7")
	short := newStation(t)
	newBudget(short, 510)
	short.routes()
	short.says("/plan?days=2", 200, "lose pages", "Runs that lose pages", "its share")
}

// TestLogAmounts: money and tokens are shown as what they are, and are not added up.
func TestLogAmounts(t *testing.T) {
	table, err := costs.Shipped().Upstream("openai")
	must(t, err)
	b := &logBody{table: table}
	for bucket, want := range map[string]string{"money": "$12.40",
		"tokens/small": "12,400,000 tokens", "gone": "12,400,000"} {
		if got := b.Amount(bucket, 12_400_000); got != want {
			t.Errorf("12,400,000 of %s are %s, want %s", bucket, got, want)
		}
	}
	b.Totals = []report.Group{{Bucket: "money", Units: 8}, {Bucket: "gone", Units: 40}}
	if got := b.Part(report.Group{Bucket: "gone", Units: 10}); got != 25 {
		t.Errorf("10 of 40 units of the bucket are %d %%", got)
	}
}
