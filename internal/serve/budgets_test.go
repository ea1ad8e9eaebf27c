package serve

import (
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

func (s *env) spend(method, id string) {
	s.Helper()
	src := s.server.Source()
	d, err := src.Config.Credentials[0].Budget(src.Ledger, src.Config.Costs, s.server.Log).Charge(
		s.Context(), quota.Call{Method: method, Key: id,
			Labels: quota.Labels{"region": "US", "team": "x"}})
	must(s, err)
	if !d.Allowed {
		s.Fatalf("%+v", d)
	}
}

// TestRegionsWithoutSchedule requires that default regions are shown only once they have a chart.
func TestRegionsWithoutSchedule(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	s.server.Source().Config.Ingest.Scheduled = false
	s.wants(s.get("/charts"), 200, "No region is configured")
	s.wants(s.get("/readyz"), 200, "ready")
	s.fill("US", nine, "a")
	s.wants(s.get("/v1/regions"), 200, `"items":[{"region":"US"`)
	s.server.Source().Config.Ingest.Scheduled = true
	if all, err := s.server.regionStates(t.Context()); len(all) != 8 { // the response is cached
		t.Errorf("%d regions of a schedule, %v", len(all), err)
	}
}

// The API returns the same budgets as the programs.
func TestBudgets(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	for _, id := range []string{"1", "2", "3"} {
		s.spend("youtube.videos.list", id)
	}
	s.spend("youtube.search.list", "4")
	status := decode[report.Status](s, s.get("/v1/budgets"))
	if b := status.Credentials[0].Buckets[0]; b.Bucket != "default" || b.Limits[0].Used != 3 {
		t.Errorf("%+v", status)
	}
	forecast := decode[report.ForecastList](s, s.get("/v1/forecast"))
	if len(forecast.Credentials[0].Buckets) != len(status.Credentials[0].Buckets) {
		t.Errorf("%+v", forecast)
	}
	s.wants(s.get("/v1/forecast?bucket=none"), 404, "none")
	plan := decode[report.Plan](s, s.get("/v1/plan?days=2"))
	if plan.Days != 2 || !plan.Fits || len(plan.Regions) != 8 {
		t.Errorf("%+v", plan)
	}
	s.wants(s.get("/v1/plan?days=32"), 422)
	for by, want := range map[string]int64{"": 3, "?by=region": 3, "?by=label:team": 3,
		"?by=method&bucket=search_list": 1, "?by=job": 3} {
		if rows := decode[report.Groups](s, s.get("/v1/log"+by)).Rows; rows[0].Units != want {
			t.Errorf("%s: %+v, want %d units first", by, rows, want)
		}
	}
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	if rows := decode[report.Groups](s, s.get("/v1/log?since="+future)).Rows; len(rows) > 0 {
		t.Errorf("spent in an hour: %+v", rows)
	}
	for _, wrong := range []string{"by=label:run", "by=label:", "by=color", "credential=none"} {
		s.wants(s.get("/v1/log?"+wrong), 400)
	}
	s.wants(s.get("/v1/log?bucket=none"), 404)
	s.wants(s.get("/v1/log?bucket=none/small"), 404)
	s.wants(s.get("/v1/log?bucket=default/small"), 200)
	entries := decode[list[report.Entry]](s, s.get("/v1/log/entries?limit=2"))
	if len(entries.Items) != 2 || entries.Items[0].Bucket != "search_list" ||
		entries.Items[1].Bucket != "default" {
		t.Errorf("%+v", entries)
	}
}

// On a public server, every budget needs a token.
func TestBudgetsArePrivate(t *testing.T) {
	t.Parallel()
	s := newEnv(t, func(s *Server) {
		s.Public, s.Tokens = true, tokens(t, "a-secret-token-0")
	})
	for _, path := range []string{"/v1/budgets", "/v1/forecast", "/v1/plan", "/v1/log",
		"/v1/log/entries"} {
		s.wants(s.get(path), 401, "token_file")
		s.wants(s.get(path, "Authorization", "Bearer a-secret-token-0"), 200)
		s.wants(s.get(path), 401) // a page read with a token is not cached for other readers
	}
}
