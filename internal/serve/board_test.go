package serve

import (
	"bytes"
	"encoding/xml"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// The board shows that all is well, the spenders and the next runs.
func TestBoard(t *testing.T) {
	s, b := newBudget(t, 10_000)
	now := time.Now()
	s.store("US", "run1", now.Add(-3*time.Minute), named("a", "First", 1))
	b.charge(now, "youtube.videos.list", 4, "job=trending region=US")
	page := s.shows("/", 200, "Every bucket lasts to its reset", "9,496 of 9,500 units left",
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

// TestBoard_Untouched: after a reset, the board shows a bucket as used while another of its limits
// still counts units.
func TestBoard_Untouched(t *testing.T) {
	for used, busy := range map[int64]bool{0: false, 4: true} {
		day := quota.LimitUsage{}
		a := &account{Main: day}
		a.Limits = []quota.LimitUsage{day, {Used: used}}
		if a.Busy() != busy {
			t.Errorf("%d used of the second limit: busy %v", used, !busy)
		}
	}
}

// TestBoard_Short requires that the headline names the short bucket and that the board lists the
// lost runs.
func TestBoard_Short(t *testing.T) {
	s, b := newBudget(t, 560)
	ingest := &s.server.Source().Config.Ingest // so frequent that some runs are lost at any time of day
	ingest.Schedule, ingest.Stagger.Step = "@every 20s", time.Second
	b.charge(time.Now().Add(-time.Second), "youtube.videos.list", 60, "job=backfill")
	s.shows("/", 200, "default is exhausted", "Left out until the reset", "0 of 60 units left",
		"backfill 60")
	must(t, b.Ledger.Suspend(t.Context(), quota.Suspension{Credential: "key1",
		Bucket: "search_list", Until: time.Now().Add(2 * time.Hour)}))
	s.server.site.forecasts.at = time.Time{} // expired
	page := s.shows("/", 200, "default is exhausted default is exhausted (",
		"search_list is suspended until")
	if !strings.Contains(page.body, `class="suspended"`) {
		t.Error("the suspension is not drawn")
	}
}

// The large number is the units left under the limit that binds, although another limit is drawn.
func TestBoard_Binds(t *testing.T) {
	s, b := newBudget(t, 10_000)
	cred := &s.server.Source().Config.Credentials[0]
	cred.Limits[1].Units = 6000 // in 24h; most of the day's limit is left
	calls := quota.Limit{Bucket: "default", Units: 3, Window: quota.Window{Concurrent: true}}
	cred.Limits = append(cred.Limits, calls)
	b.charge(time.Now().Add(-time.Second), "youtube.videos.list", 60, "job=backfill")
	page := s.shows("/", 200, "5,440 of 5,500 units left now (24h)", "day 9,440 of 9,500 left")
	if !strings.Contains(page.body, ">9,440 of 9,500 units for scheduled charges are left at") {
		t.Errorf("the day is not drawn: %s", page.text())
	}
	must(t, b.Ledger.Suspend(t.Context(), quota.Suspension{Credential: "key1", Bucket: "default",
		Until: time.Now().Add(2 * time.Hour)}))
	s.server.site.forecasts.at = time.Time{} // expired
	s.shows("/", 200, "0 of 5,500 units left now (suspended until ")
}

// TestBoard_Labels checks that the board and the page of the log show each value of a label, and
// that the plan's page names the limit it leaves out.
func TestBoard_Labels(t *testing.T) {
	s, b := newBudget(t, 10_000)
	cred := &s.server.Source().Config.Credentials[0]
	cred.PerLabel = []quota.LabelLimit{{Label: "team", Parts: map[string]int64{"ü": 50},
		Limit: quota.Limit{Bucket: "default", Units: 30, Window: quota.Sliding(24 * time.Hour)}}}
	b.PerLabel = cred.PerLabel
	for team, units := range map[string]int64{"ü": 40, "": 7} {
		d, err := b.Charge(t.Context(), quota.Call{Units: units, Labels: quota.Labels{"team": team}})
		if must(t, err); !d.Allowed {
			t.Fatalf("%+v", d)
		}
	}
	s.shows("/", 200, "9,453 of 9,500 units left", "default@team=~c3~bc 10 of 50 units left",
		"default@team=(none) 23 of 30 units left")
	for _, bucket := range []string{"default@team=~c3~bc", "default@team="} {
		s.shows("/log?bucket="+url.QueryEscape(bucket), 200, "Total "+bucket)
	}
	s.shows("/plan", 200, "The plan leaves out the limit default per label:team 24h.")
	s.wants(s.get("/v1/budgets"), 200, `"bucket":"default@team=~c3~bc","per":"label:team","value":"ü"`,
		`"value":"","held":0,"suspended_until":null,"limits":[{"window":"24h","timezone":null,`+
			`"units":30,"headroom":0,"used":7,"remaining":23,`)
	s.wants(s.get("/v1/forecast?bucket=default@team=~c3~bc"), 200, `"remaining":10`)
	s.wants(s.get("/v1/plan"), 200, `"unplayed":["default per label:team 24h"]`)
}

// TestBoard_Denied checks that the board names the jobs that were denied today.
func TestBoard_Denied(t *testing.T) {
	s, b := newBudget(t, 560) // 60 units without the headroom
	for range 2 {
		d, err := b.Charge(t.Context(), quota.Call{Bucket: "default", Units: 60,
			Labels: quota.Labels{quota.LabelJob: "backfill"}})
		must(t, err)
		if !d.Allowed {
			b.ledger.Flush(time.Minute)
		}
	}
	const text = "key1: denied in the last 24h: 1 of backfill"
	s.shows("/", 200, text)
}

// The board shows whether a daemon answers where its health checks are served.
func TestBoard_Daemon(t *testing.T) {
	s, _ := newBudget(t, 10_000)
	daemon := newEnv(t, nil) // serves /healthz, too
	s.server.Source().Config.Daemon.Listen = strings.TrimPrefix(daemon.url, "http://")
	s.shows("/", 200, "The daemon is alive")
	s.server.site.alive.at = time.Time{} // expired
	s.server.Source().Config.Daemon.Listen = "127.0.0.1:1"
	s.shows("/", 200, "No daemon answers at 127.0.0.1:1")
}

// If the ledger cannot be read, the charts are complete nevertheless.
func TestBoard_NoLedger(t *testing.T) {
	s, b := newBudget(t, 10_000)
	s.store("US", "run1", time.Now(), named("a", "First", 1))
	must(t, b.ledger.Close())
	s.shows("/", 200, "The ledger cannot be read", "US just now complete")
}

// While the ledger is away, the board shows the units that may be spent without it and the entries
// waiting to be recorded.
func TestBoard_Journal(t *testing.T) {
	s, b := newBudget(t, 10_000)
	from := s.server.Source()
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
	if page := s.shows("/", 200, "units left"); strings.Contains(page.text(), "without the ledger") {
		t.Errorf("the ledger is there: %s", page.text())
	}
	must(t, b.ledger.Close())
	for range 2 {
		spend()
	}
	s.shows("/", 200, "The ledger cannot be read", "key1 may spend 14 of 20 units of default "+
		"without the ledger; 2 calls wait in the journal, the oldest of 20")
}

// Without a token, the public sees only charts.
func TestPublic(t *testing.T) {
	s, _ := newBudget(t, 10_000)
	s.server.Public, s.server.Tokens = true, tokens(t, "a-secret-token-0")
	page := s.shows("/", 200, "Regions US")
	if strings.Contains(page.body, "/log") || strings.Contains(page.text(), "units") {
		t.Errorf("the public sees budgets: %s", page.text())
	}
	for _, path := range []string{"/log", "/plan"} {
		r := s.shows(path, 401, "needs a token")
		if !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: %v", path, r.header)
		}
	}
}

func TestLogPage(t *testing.T) {
	s, b := newBudget(t, 10_000)
	s.shows("/log", 200, "Nothing was spent.")
	now := time.Now()
	b.charge(now.Add(-30*time.Hour), "youtube.videos.list", 7, "job=old")
	b.charge(now.Add(-2*time.Hour), "youtube.videos.list", 4, "job=trending region=US team=red")
	b.charge(now.Add(-time.Minute), "youtube.search.list", 3, "job=report")
	s.shows("/log", 200, "trending default 4 1", "report search_list 3 1",
		"Total default 4 1 Total search_list 3 1", "The newest charges",
		"search_list 3 job report method youtube.search.list")
	s.shows("/log?since=72h", 200, "old default 7 1", "Total default 11 2")
	s.shows("/log?since=1h&by=method", 200,
		"youtube.search.list search_list 3 1 Total search_list 3 1")
	s.shows("/log?by=team&bucket=default", 200, "red default 4 1 Total default 4 1")
	s.shows("/log?by=region", 200, "US default 4 1", "(none) search_list 3 1")
	for query, want := range map[string]string{"by=A": "by: write job", "by=run": "by: write",
		"since=1y": "since: write 1h", "bucket=none": "bucket: no such bucket",
		"bucket=none/x": "bucket: no such bucket", "credential=x": "credential: "} {
		s.shows("/log?"+query, 400, want)
	}
}

func TestPlanPage(t *testing.T) {
	s, _ := newBudget(t, 10_000)
	s.shows("/plan", 200, "Every run gets its pages", "default 24h", "US trending", "to the reset")
	s.shows("/plan?days=7", 200, "Every run gets its pages")
	s.shows("/plan?days=8", 400, "from 1 to 7")
	short, _ := newBudget(t, 510)
	short.shows("/plan?days=2", 200, "lose pages", "Runs that lose pages", "its share")
}

// TestDrawPlan requires valid XML with a plot for each limit and the lost hours.
func TestDrawPlan(t *testing.T) {
	s, _ := newBudget(t, 510)
	planned, err := s.server.Source().Plan(t.Context(), report.PlanQuery{Days: 2})
	must(t, err)
	var out bytes.Buffer
	planned.LostHours = []time.Time{planned.Report.From.Add(time.Hour)}
	must(t, DrawPlan(&out, planned))
	if n := strings.Count(out.String(), `class="lost"`); n != len(planned.Report.Series) {
		t.Errorf("%d plots with the lost hour, of %d limits", n, len(planned.Report.Series))
	}
	must(t, xml.Unmarshal(out.Bytes(), new(struct{})))
}

// TestLogAmounts requires that money and tokens are shown in their units and not added up.
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
