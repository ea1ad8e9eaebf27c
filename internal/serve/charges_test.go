package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// limitedTo serves only a ledger, under limits.
func limitedTo(t *testing.T, limits string) func(*Server) {
	t.Helper()
	return limitedOn(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"), limits)
}

// limitedOn is limitedTo with a ledger URL.
func limitedOn(t testing.TB, url, limits string) func(*Server) {
	t.Helper()
	cfg, l := configured(t, "ledger: "+url+"\ncredentials:\n  - {name: a1, limits: ["+limits+"]}\n")
	return func(s *Server) {
		s.Catalog, s.Source = nil, func() report.Source { return report.Source{Config: cfg, Ledger: l} }
	}
}

// configured reads a configuration, and opens its ledger.
func configured(t testing.TB, text string) (*config.Config, *ledger.Ledger) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "quota.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	cfg, err := config.Load(t.Context(), path, func(name string) string {
		return map[string]string{"QUOTA_STATE_DIR": dir}[name]
	})
	must(t, err)
	l, err := ledger.Open(t.Context(), cfg.Ledger)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return cfg, l
}

const hourly = "{bucket: default, units: 100, window: 1h, headroom: 10}"

// TestCharges checks the status, the text and the schema of each response to a charge.
func TestCharges(t *testing.T) {
	t.Parallel()
	s := newEnv(t, limitedTo(t, hourly))
	once := []string{"Idempotency-Key", "k1"}
	for _, step := range []struct {
		path, body string
		headers    []string
		status     int
		words      string
	}{
		{"charges", `{"method":"youtube.videos.list"}`, once, 200, `"remaining":{"default":89}`},
		{"charges", `{"method":"youtube.videos.list"}`, once, 200, `"replayed":true`},
		{"charges", `{"units":2}`, once, 409, "key was used before"},
		{"charges", `{"units":90}`, nil, 429, `"limit":"default 1h"`},
		{"charges", `{"units":91}`, nil, 422, `"never":true`},
		{"charges", `{"units":95,"manual":true}`, nil, 200, `"allowed":true`},
		{"charges", `{"costs":{"default":1},"dry_run":true}`, nil, 429, `"dry_run":true`},
		{"charges", `{"units":1,"bucket":"other"}`, nil, 404, "it has limits on default"},
		{"charges", `{"method":"youtube.videos.lst"}`, nil, 404, "did you mean youtube.videos.list"},
		{"charges", `{"units":1,"credential":"b"}`, nil, 404, "no credential"},
		{"charges", `{}`, nil, 422, "send one of method, units and costs"},
		{"charges", `{"costs":{}}`, nil, 422, "send one of method, units and costs"},
		{"charges", `{"costs":{"default":-1}}`, nil, 422, "units"},
		{"charges", `{"units":1,"costs":{"default":1}}`, nil, 422, "send one of"},
		{"charges", `{"bucket":"default"}`, nil, 422, "send one of"},
		{"charges", `{"units":1,"count":2}`, nil, 422, "count needs method"},
		{"charges", `{"units":1,"labels":{"Team":"x"}}`, nil, 422, "label name"},
		{"charges", `{"method":"youtube.videos.list","Count":9}`, nil, 422,
			`"message":"Count: no such key"`},
		{"holds", `{"units":1,"ttl":"1h","Lapse":"charge"}`, nil, 422,
			`"message":"Lapse: no such key"`},
		{"charges", `{"units":1}`, []string{"Idempotency-Key", "k1", "Idempotency-Key", "k2"}, 400,
			"one Idempotency-Key"},
		{"charges", `{"units":1}`, []string{"Idempotency-Key", ""}, 400,
			"the Idempotency-Key is empty"},
		{"charges", `{"units":1,"extra":1}`, nil, 422, "body.extra"},
		{"charges", `{"units":1,"units":2}`, nil, 400, `"message":"units appears twice"`},
		{"charges", `{"units":1e30}`, nil, 422, `"message":"units: wrong type, or out of range"`},
		{"charges", "{\n\"units\":", nil, 400, `"message":"cannot parse the JSON at line 2, byte 9"`},
		{"charges", `{"units":1} x`, nil, 400, `"message":"cannot parse the JSON at line 1, byte 13"`},
		{"charges", `{"units":1}`, []string{"Idempotency-Key", strings.Repeat("k", 257)}, 422, "header"},
		{"charges", `{"units":1` + strings.Repeat(" ", 64<<10) + `}`, nil, 413, "too large"},
		{"holds", `{"units":5,"ttl":"soon"}`, nil, 422, "ttl: must be a duration"},
		{"holds", `{"units":5,"ttl":"1h","lapse":"never"}`, nil, 422, "body.lapse"},
		{"holds", `{"units":5,"ttl":"1h"}`, nil, 429, "retry_at"},
		{"holds/default.06fmjq2kx4a9bc/settlements", `{"costs":{"default":1}}`, nil, 404, "no such"},
		{"holds/nonsense/settlements", `{"costs":{"default":1}}`, nil, 404, "not a reservation"},
	} {
		s.wants(s.send(http.MethodPost, "/v1/"+step.path, step.body, step.headers...), step.status,
			step.words)
	}
	denied := s.send(http.MethodPost, "/v1/charges", `{"units":90}`)
	for name, want := range map[string]string{"Retry-After": "3", "RateLimit": `"default 1h";r=0;t=3`,
		"Content-Type": problemJSON} {
		if got := denied.header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q and more", name, got, want)
		}
	}
	s.wants(s.send(http.MethodPost, "/v1/charges", `{"units":1}`, "Content-Type", "text/plain"), 415)
	s.wants(s.send(http.MethodPost, "/v1/charges", `{"units":1`, "Content-Type",
		"Application/JSON; charset=UTF-8"), 400, "cannot parse the JSON")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/charges HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
	must(t, conn.(*net.TCPConn).CloseWrite())
	broken, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	must(t, broken.Body.Close())
	if broken.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that breaks off: %s", broken.Status)
	}
	s.wants(s.get("/v1/budgets"), 200, `"used":96`)
	s.wants(s.get("/readyz"), 200)
	s.wants(s.get("/"), 404)
}

// TestHolds settles one hold and releases another.
func TestHolds(t *testing.T) {
	t.Parallel()
	s := newEnv(t, limitedTo(t, hourly))
	hold := func(body string) string {
		t.Helper()
		r := s.send(http.MethodPost, "/v1/holds", body)
		s.wants(r, 201, `"units":{"default":20}`, `"remaining":{"default":`)
		path := r.header.Get("Location")
		var created struct{ Hold string }
		must(t, json.Unmarshal([]byte(r.body), &created))
		if path != "/v1/holds/"+url.PathEscape(created.Hold) {
			t.Errorf("Location is %q of %s", path, created.Hold)
		}
		return path
	}
	path := hold(`{"units":20,"ttl":"1m","labels":{"team":"ci"},"note":"n"}`)
	s.wants(s.send(http.MethodPatch, path, `{"ttl":"2h"}`), 200, `"expires_at"`)
	for range 2 { // a repeat gets the same response
		s.wants(s.send(http.MethodPost, path+"/settlements", `{"costs":{"default":33}}`), 200,
			`{"units":{"default":33},"remaining":{"default":57},"late":false}`)
	}
	s.wants(s.send(http.MethodPost, path+"/settlements", `{"costs":{"default":34}}`), 409)
	s.wants(s.send(http.MethodPost, path+"/settlements", `{"costs":{"default":-1}}`), 422,
		"must be 0 or more")
	s.wants(s.send(http.MethodPost, path+"/settlements", `{"costs":{"default":1000000000001}}`), 422,
		"must be 0 to 1000000000000")
	s.wants(s.send(http.MethodDelete, path, ""), 404)
	s.wants(s.get("/v1/log/entries"), 200, `"units":33`, `"team":"ci"`) // of the hold
	path = hold(`{"units":20,"ttl":"1m"}`)
	s.wants(s.send(http.MethodDelete, path, ""), 200, `{"released":{"default":20}}`)
	s.wants(s.send(http.MethodPatch, path, `{"ttl":"2h"}`), 404, "no such reservation")
}

// TestLostHold settles holds that the ledger does not have, as after a failover: with charge_lost
// the costs are charged once, beyond the limits, unless the hold is more than two days old.
func TestLostHold(t *testing.T) {
	t.Parallel()
	s := newEnv(t, limitedTo(t, hourly+", {bucket: default, per: label:team, units: 50, window: 1h}"))
	lost := "default+default@team=ci." + quota.NewID(time.Now())
	for _, step := range []struct {
		hold, body string
		status     int
		words      string
	}{
		{lost, `{"costs":{"default":120}}`, 404, "no such reservation"},
		{lost, `{"costs":{"default@team=ci":1},"charge_lost":true}`, 422, "charge default"},
		{lost, `{"costs":{},"charge_lost":true}`, 404, "no such reservation"},
		{"default+search_list." + quota.NewID(time.Now()),
			`{"costs":{"default":1},"charge_lost":true}`, 422, "the units of search_list"},
		{lost, `{"costs":{"default":120},"charge_lost":true}`, 200, `{"units":{"default":120},`},
		{lost, `{"costs":{"default":120},"charge_lost":true}`, 200, `{"units":{"default":120},`},
		{lost, `{"costs":{"default":121},"charge_lost":true}`, 409, "used before"},
		{"default." + quota.NewID(time.Now().Add(-49*time.Hour)),
			`{"costs":{"default":1},"charge_lost":true}`, 404, "no such reservation"},
		{"default.made-by-hand", `{"costs":{"default":1},"charge_lost":true}`, 404, ""},
	} {
		s.wants(s.send(http.MethodPost, "/v1/holds/"+step.hold+"/settlements", step.body), step.status,
			step.words)
	}
	s.wants(s.get("/v1/budgets"), 200, `"value":"ci","held":0,`, `"units":50,"headroom":0,"used":120`,
		`"headroom":10,"used":120`)
}

// TestLedgerOfAnotherTime requires that only the ledger's clock counts. It is years ahead of this
// host's, jumps back, and jumps ahead past the end of a hold.
func TestLedgerOfAnotherTime(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{Clock: true})
	at := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	redis.SetNow(t, at)
	s := newEnv(t, limitedOn(t, redis.URL(), hourly))
	charge := func(units int) reply {
		return s.send(http.MethodPost, "/v1/charges", fmt.Sprintf(`{"units":%d}`, units))
	}
	s.wants(charge(70), 200)
	held := s.send(http.MethodPost, "/v1/holds", `{"units":20,"ttl":"10m","lapse":"charge"}`)
	s.wants(held, 201, `"expires_at":"2031-05-01T12:10:00.0000`)
	for _, step := range []struct {
		at    time.Time
		after string
	}{{at.Add(-23 * time.Hour), "86400"}, {at.Add(time.Minute), "3540"}} {
		redis.SetNow(t, step.at)
		r := charge(60)
		s.wants(r, 429, `"retry_at":"2031-05-01T13:00:00.0000`)
		if got := r.header.Get("Retry-After"); got != step.after {
			t.Errorf("at %v: Retry-After is %s, want %s", step.at, got, step.after)
		}
	}
	redis.SetNow(t, at.Add(11*time.Minute)) // the hold has lapsed
	s.wants(s.send(http.MethodPost, held.header.Get("Location")+"/settlements",
		`{"costs":{"default":5}}`), 200, `"late":true`)
	redis.SetNow(t, at.Add(61*time.Minute))
	s.wants(charge(85), 200)
	s.wants(charge(1), 429, `"limit":"default 1h"`)
}

// TestLateSettlement corrects the charge made when a hold lapsed.
func TestLateSettlement(t *testing.T) {
	t.Parallel()
	s := newEnv(t, limitedTo(t, hourly))
	r := s.send(http.MethodPost, "/v1/holds", `{"units":20,"ttl":"1ms","lapse":"charge"}`)
	s.wants(r, 201)
	path := r.header.Get("Location") + "/settlements"
	for r = s.get("/v1/budgets"); !strings.Contains(r.body, `"used":20`); r = s.get("/v1/budgets") {
	} // wait until it lapses
	s.wants(s.send(http.MethodPost, path, `{"costs":{"default":3}}`), 200, `"late":true`)
	s.wants(s.get("/v1/budgets"), 200, `"used":3`)
}

// TestTokenScopes requires that each token permits what its line grants and nothing else.
func TestTokenScopes(t *testing.T) {
	t.Parallel()
	serve := limitedTo(t, hourly+", {bucket: search_list, units: 50, window: 1h}")
	s := newEnv(t, func(srv *Server) {
		serve(srv)
		srv.Public = true
		srv.Tokens = tokens(t, `
reader reader-token-0123456
ci     ci-token-0123456789ab charge bucket=search_list label=team=ci
boss   boss-token-0123456789 admin manual
`)
	})
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	const reader, ci, boss = "reader-token-0123456", "ci-token-0123456789ab", "boss-token-0123456789"
	for _, step := range []struct {
		token, body string
		status      int
		words       string
	}{
		{"wrong-token-012345678", `{"bucket":"search_list","units":1}`, 401, "not in token_file"},
		{reader, `{"bucket":"search_list","units":1}`, 403, "lacks the scope charge"},
		{ci, `{"bucket":"search_list","units":1}`, 200, "allowed"},
		{ci, `{"bucket":"default","units":1}`, 403, "may not charge default"},
		{ci, `{"costs":{"search_list":1,"default":1}}`, 403, "may not charge default"},
		{ci, `{"method":"youtube.videos.list"}`, 403, "may not charge default"},
		{ci, `{"bucket":"search_list","units":1,"manual":true}`, 403, "manual"},
		{boss, `{"bucket":"default","units":95,"manual":true}`, 200, "allowed"},
	} {
		s.wants(s.send(http.MethodPost, "/v1/charges", step.body, as(step.token)...), step.status,
			step.words)
	}
	s.wants(s.send(http.MethodPost, "/v1/charges", `{"units":1}`), 401, "send a token")
	s.wants(s.get("/v1/budgets", as(ci)...), 401, "lacks the scope read")
	s.wants(s.get("/v1/budgets", as(reader)...), 200)
	s.wants(s.get("/v1/log/entries?bucket=search_list", as(boss)...), 200, `"team":"ci"`, `"caller":"ci"`)
	r := s.send(http.MethodPost, "/v1/holds", `{"units":1,"ttl":"1h"}`, as(boss)...)
	s.wants(r, 429)
	r = s.send(http.MethodPost, "/v1/holds", `{"units":1,"ttl":"1h","manual":true}`, as(boss)...)
	s.wants(r, 201)
	s.wants(s.send(http.MethodDelete, r.header.Get("Location"), "", as(ci)...), 403)
	s.wants(s.send(http.MethodDelete, r.header.Get("Location"), "", as(boss)...), 200)
	s.wants(s.send(http.MethodPost, "/v1/charges", `{"units":1}`), 401)
}

// TestHoldsOfALabel requires that a caller whose token has a label cannot settle, extend or release
// a hold of another value, even if the ledger has lost the hold. Only the bytes of a value that the
// ledger keeps are compared.
func TestHoldsOfALabel(t *testing.T) {
	t.Parallel()
	serve := limitedTo(t, hourly+", {bucket: default, per: label:team, units: 50, window: 1h}")
	long := strings.Repeat("l", 70)
	s := newEnv(t, func(srv *Server) {
		serve(srv)
		srv.Tokens = tokens(t, "ci ci-token-0123456789ab charge label=team=ci\n"+
			"web web-token-0123456789a charge label=team="+long+"\nops ops-token-0123456789a charge\n")
	})
	ci := []string{"Authorization", "Bearer ci-token-0123456789ab"}
	web := []string{"Authorization", "Bearer web-token-0123456789a"}
	r := s.send(http.MethodPost, "/v1/holds", `{"units":20,"ttl":"1h"}`, web...)
	s.wants(r, 201)
	hold := r.header.Get("Location")
	lost := "/v1/holds/default+default@team=" + long[:64] + "." + quota.NewID(time.Now())
	for _, path := range []string{hold, lost} {
		path += "/settlements"
		s.wants(s.send(http.MethodPost, path, `{"costs":{"default":50},"charge_lost":true}`, ci...),
			403, "this token charges for team=ci, not for team=lll")
		s.wants(s.send(http.MethodPost, path, `{"costs":{"default":1},"charge_lost":true}`, web...),
			200)
	}
	s.wants(s.send(http.MethodPatch, hold, `{"ttl":"9h"}`, ci...), 403)
	s.wants(s.send(http.MethodDelete, hold, "", ci...), 403)
	r = s.send(http.MethodPost, "/v1/holds", `{"units":20,"ttl":"1h"}`, ci...)
	s.wants(s.send(http.MethodDelete, r.header.Get("Location"), "", "Authorization",
		"Bearer ops-token-0123456789a"), 200)
}

// TestDenialOfALabel requires that the RateLimit fields are those of the value that is exhausted,
// not of the bucket, which has units left.
func TestDenialOfALabel(t *testing.T) {
	t.Parallel()
	s := newEnv(t, limitedTo(t, hourly+", {bucket: default, per: label:team, units: 50, window: 1h}"))
	for value, labels := range map[string]string{"ci": `{"team":"ci"}`, "(none)": `{}`} {
		body := `{"units":30,"labels":` + labels + `}`
		s.wants(s.send(http.MethodPost, "/v1/charges", body), 200)
		r := s.send(http.MethodPost, "/v1/charges", body)
		name := `"default@team=` + value + ` 1h"`
		s.wants(r, 429, `"violated-policies":[`+name+`]`)
		if got := r.header.Get("RateLimit-Policy"); got != name+";q=50;w=3600" {
			t.Errorf("RateLimit-Policy: %s", got)
		}
		if got := r.header.Get("RateLimit"); !strings.HasPrefix(got, name+";r=20;t=3") {
			t.Errorf("RateLimit: %s", got)
		}
	}
}

// TestChargesTogether sends more concurrent charges than fit: exactly the limit is allowed.
func TestChargesTogether(t *testing.T) {
	t.Parallel()
	s := newEnv(t, limitedTo(t, hourly))
	var allowed, denied atomic.Int64
	var callers sync.WaitGroup
	for i := range 150 {
		callers.Go(func() {
			r, err := http.Post(s.url+"/v1/charges", "application/json",
				strings.NewReader(fmt.Sprintf(`{"units":1,"labels":{"n":"%d"}}`, i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			switch r.StatusCode {
			case 200:
				allowed.Add(1)
			case 429:
				denied.Add(1)
			default:
				t.Error(r.Status)
			}
		})
	}
	callers.Wait()
	if allowed.Load() != 90 || denied.Load() != 60 {
		t.Errorf("%d allowed and %d denied of 150 under 90", allowed.Load(), denied.Load())
	}
}

// TestTraceOfACharge requires that a request's trace labels the entries of its charge and its hold.
func TestTraceOfACharge(t *testing.T) {
	t.Parallel()
	var src report.Source
	set := limitedTo(t, hourly)
	s := newEnv(t, func(s *Server) { set(s); src = s.Source() })
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	header := []string{"Traceparent", "00-" + trace + "-00f067aa0ba902b7-01"}
	s.wants(s.send(http.MethodPost, "/v1/charges", `{"units":1}`, header...), 200)
	s.wants(s.send(http.MethodPost, "/v1/charges", `{"units":1}`, "Traceparent", "00-1-1-1"), 200)
	entries, err := src.Ledger.Entries(t.Context(), quota.Query{Credential: "a1", Bucket: "default"})
	must(t, err)
	if len(entries) != 2 || entries[0].Labels[quota.LabelTrace]+entries[1].Labels[quota.LabelTrace] != trace {
		t.Errorf("%+v", entries)
	}
	s.wants(s.get("/v1/log?by=label:trace"), 400)
}
