package daemon_test

import (
	"context"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// logged returns the number of log lines that contain all the words.
func (w *env) logged(words ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.log {
		lacks := func(word string) bool { return !strings.Contains(line, word) }
		if !slices.ContainsFunc(words, lacks) {
			n++
		}
	}
	return n
}

// expectLogged checks the number of log lines that contain all the words.
func (w *env) expectLogged(n int, words ...string) {
	w.Helper()
	w.expect(w.logged(words...), n, "lines with", words)
}

// expect checks that got equals want; what describes them in the failure.
func (w *env) expect(got, want any, what ...any) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Errorf("got %v, want %v %v", got, want, what)
	}
}

// expectRequests checks the number of requests since the last call of taken.
func (w *env) expectRequests(n int) {
	w.Helper()
	asked := w.taken()
	w.expect(len(asked), n, "requests", asked)
}

// expectMetrics checks that the metrics contain the lines.
func (p *proc) expectMetrics(lines ...string) {
	p.Helper()
	_, metrics := p.scrape("/metrics")
	for _, want := range lines {
		if !strings.Contains(metrics, want+"\n") {
			p.Errorf("metrics lack %s", want)
		}
	}
}

// expectReadyz checks the response of /readyz.
func (p *proc) expectReadyz(code int, text string) {
	p.Helper()
	if got, body := p.scrape("/readyz"); got != code || !strings.Contains(body, text) {
		p.Errorf("/readyz: got %d %s, want %d %q", got, body, code, text)
	}
}

// taken returns the requests since its last call.
func (w *env) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// scrape reads the metrics, or another path.
func (p *proc) scrape(path string) (int, string) {
	rec := httptest.NewRecorder()
	p.handler.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return rec.Code, rec.Body.String()
}

// runs returns the number of complete charts of the regions by tick.
func (w *env) runs(regions string) map[string]int {
	w.Helper()
	runs := make(map[string]int)
	for region := range strings.FieldsSeq(regions) {
		key := region
		charts, err := w.look.catalog.Charts(context.Background(), key, 0)
		must(w, err)
		for _, c := range charts {
			if !c.CompletedAt.IsZero() {
				runs[c.Run]++
			}
		}
	}
	return runs
}

// expectRuns compares the complete charts with the lanes' ticks in (from, to]: one for each.
func (w *env) expectRuns(lanes []share.Lane, from, to time.Time) {
	w.Helper()
	want := make(map[string]int)
	var names []string
	for _, l := range lanes {
		names = append(names, l.Region)
		for tick := range l.Ticks(from, to) {
			want[tick.ID()] = 1
		}
	}
	w.expect(w.runs(strings.Join(names, " ")), want, "runs")
}

// claim claims a name, as another daemon would.
func (w *env) claim(name string, ttl time.Duration) quota.ClaimState {
	w.Helper()
	state, err := w.look.ledger.Claim(context.Background(),
		quota.Claim{Credential: "key1", Name: name, Holder: "other", TTL: ttl})
	if err != nil {
		w.Error(err)
	}
	return state
}

// done marks a tick done, as another daemon would.
func (w *env) done(tick string) {
	w.Helper()
	c := quota.Claim{Credential: "key1", Name: tick, Holder: "any", TTL: time.Hour}
	if state, err := w.look.ledger.Claim(w.Context(), c); err != nil || state != quota.ClaimWon {
		w.Fatal(state, err)
	}
	must(w, w.look.ledger.Finish(w.Context(), c, true))
}

// spent returns the units in the ledger by region.
func (w *env) spent() map[string]int64 { return w.spentBy(quota.LabelRegion) }

// spentBy returns the units in the ledger by a label.
func (w *env) spentBy(label string) map[string]int64 {
	w.Helper()
	entries, err := w.look.ledger.Entries(context.Background(),
		quota.Query{Credential: "key1", Bucket: quota.DefaultBucket})
	must(w, err)
	units := make(map[string]int64)
	for _, e := range entries {
		units[e.Labels[label]] += e.Units
	}
	return units
}
