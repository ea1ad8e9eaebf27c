package notify_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/notify"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// secret is the signing key of the receivers. Its bytes are "twenty-four bytes of key".
const secret = "whsec_dHdlbnR5LWZvdXIgYnl0ZXMgb2Yga2V5"

// look is a time limit for Notifier.Look that no test reaches.
const look = 30 * time.Second

// env is a ledger, a receiver of notifications, and hosts that share them.
type env struct {
	*testing.T
	ledger   *ledger.Ledger
	redis    *redistest.Server // nil on SQLite
	cfg      *config.Config
	receiver *httptest.Server
	log      lines

	mu      sync.Mutex
	answers []http.HandlerFunc // responses to the next requests; 200 after them
	texts   []string
	ids     []string
}

type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(text)
}

// newEnv starts a receiver and reads a configuration that names it.
func newEnv(t *testing.T, redis bool, rest string) *env {
	e := &env{T: t}
	e.receiver = httptest.NewServer(http.HandlerFunc(e.receive))
	t.Cleanup(e.receiver.Close)
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "ledger.db")
	if redis {
		e.redis = redistest.Start(t, redistest.Options{Clock: true})
		e.redis.SetNow(t, time.Now())
		url = e.redis.URL()
	}
	text := fmt.Sprintf("ledger: %s\ncredentials:\n"+
		"  - {name: key1, limits: [{bucket: default, units: 100, window: 24h}]}\n"+
		"notify:\n  url: %s/services/T012345\n  secret: {env: SECRET}\n%s", url, e.receiver.URL, rest)
	file := filepath.Join(dir, "quota.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	var err error
	e.cfg, err = config.Load(t.Context(), file, func(name string) string {
		return map[string]string{"SECRET": secret, "HOME": dir}[name]
	})
	must(t, err)
	e.ledger, err = ledger.Open(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { e.ledger.Close() })
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (e *env) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m struct{ Text, ID string }
	if err != nil || json.Unmarshal(body, &m) != nil || m.ID != r.Header.Get("webhook-id") ||
		r.Header.Get("webhook-signature") != signature(r.Header, body) {
		e.Errorf("unsigned or malformed: %v %s", r.Header, body)
	}
	e.mu.Lock()
	e.ids = append(e.ids, m.ID)
	var answer func(http.ResponseWriter, *http.Request)
	if len(e.answers) > 0 {
		answer, e.answers = e.answers[0], e.answers[1:]
	} else {
		e.texts = append(e.texts, m.Text)
	}
	e.mu.Unlock()
	if answer != nil {
		answer(w, r)
	}
}

// host returns the notifier of another process.
func (e *env) host() *notify.Notifier {
	src := report.Source{Config: e.cfg, Ledger: e.ledger}
	return notify.New(func() report.Source { return src }, []string{"PATH=" + os.Getenv("PATH")},
		slog.New(slog.NewTextHandler(&e.log, nil)))
}

func (e *env) spend(units int64) {
	e.Helper()
	cred := e.cfg.Credentials[0]
	b := cred.Budget(e.ledger, e.cfg.Table(cred), slog.New(slog.DiscardHandler))
	d, err := b.Charge(e.Context(), quota.Call{Bucket: "default", Units: units})
	if err != nil || !d.Allowed {
		e.Fatalf("%d units: %+v, %v", units, d, err)
	}
}

// sent checks which notifications the receiver has accepted, by words they contain.
func (e *env) sent(want ...string) {
	e.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	contains := func(text, words string) bool { return strings.Contains(text, words) }
	if !slices.EqualFunc(e.texts, want, contains) {
		e.Fatalf("sent %q, not %q; log:\n%s", e.texts, want, &e.log)
	}
}

func (e *env) requests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.ids)
}

func answer(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// TestOnceAcrossHosts: hosts that check at the same time send one notification, for the largest
// share. Falling back to a smaller share sends nothing.
func TestOnceAcrossHosts(t *testing.T) {
	t.Parallel()
	for _, redis := range []bool{false, true} {
		t.Run(map[bool]string{false: "sqlite", true: "redis"}[redis], func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, redis, "  at: [50%, 80%, 100%]")
			all := func() {
				var looking sync.WaitGroup
				for range 3 {
					n := e.host()
					looking.Go(func() { n.Look(t.Context(), look, true); n.Look(t.Context(), look, true) })
				}
				looking.Wait()
			}
			e.spend(49)
			all()
			e.sent()
			e.spend(31)
			all()
			e.sent("80% of default 24h")
			e.cfg.Notify.At = []int64{50}
			all()
			e.sent("80% of default 24h")
			e.cfg.Notify.At = []int64{50, 80, 100}
			e.spend(20)
			all()
			e.sent("80% of default 24h", "100% of default 24h")
			if redis {
				e.redis.SetNow(t, time.Now().Add(25*time.Hour))
				e.spend(50)
				all()
				e.sent("80%", "100%", "50% of default 24h")
			}
		})
	}
}

// TestReceiverFails: the notification is sent again to a receiver that fails, with the same ID:
// within seconds if a retry may help, otherwise at the first look after the lease.
func TestReceiverFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers  []http.HandlerFunc
		requests int // of the first look
		log      string
	}{
		"500 twice": {[]http.HandlerFunc{answer(500), answer(503)}, 3, ""},
		"redirect": {[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}}, 1, "write the address that it redirects to"},
		"refused": {[]http.HandlerFunc{answer(401)}, 1, "check url and secret"},
		"hangs": {[]http.HandlerFunc{
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}, 1, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, true, "  at: [80%]")
			e.answers = c.answers
			e.spend(80)
			most := look
			if name == "hangs" {
				most = time.Second
			}
			e.host().Look(t.Context(), most, true)
			if e.requests() != c.requests || !strings.Contains(e.log.String(), c.log) {
				t.Fatalf("%d requests, not %d; log:\n%s", e.requests(), c.requests, &e.log)
			}
			if c.log != "" {
				e.host().Look(t.Context(), look, true)
				e.sent() // the lease is still held
				e.redis.SetNow(t, time.Now().Add(61*time.Second))
				e.host().Look(t.Context(), look, true)
			}
			e.sent("80%")
			if len(slices.Compact(e.ids)) != 1 {
				t.Errorf("IDs %q", e.ids)
			}
		})
	}
}

// TestMarkFails: a host that sends an event but then cannot reach the ledger to mark it does not
// send it again. A later look marks the event and those of smaller shares, even if the share is no
// longer configured.
func TestMarkFails(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false, "  at: [50%, 80%]")
	file := strings.TrimPrefix(e.cfg.Ledger, "sqlite:")
	e.answers = []http.HandlerFunc{func(http.ResponseWriter, *http.Request) {
		must(t, os.Rename(file, file+".away"))
	}}
	e.spend(80)
	n := e.host()
	for range 2 {
		n.Look(t.Context(), look, true)
	}
	must(t, os.Rename(file+".away", file))
	for _, at := range []int64{90, 80, 50} {
		e.cfg.Notify.At = []int64{at}
		n.Look(t.Context(), look, true)
		n = e.host()
	}
	n.Look(t.Context(), look, true)
	if e.requests() != 1 || strings.Count(e.log.String(), "WARN") != 2 { // one for each share
		t.Errorf("%d requests, want 1; log:\n%s", e.requests(), &e.log)
	}
}

// TestID: all attempts to send a notification have the same ID, even if a new period of a sliding
// window begins between them. The next notification has another ID.
func TestID(t *testing.T) {
	t.Parallel()
	const midnight, noon = 24 * time.Hour, 12 * time.Hour
	for name, c := range map[string]struct {
		window, zone, event string
		first               time.Duration // time from midnight to the first attempt
	}{
		"forecast, day":    {"day", "UTC", "  on: [forecast]", noon},
		"limit, 24h":       {"24h", "", "  at: [80%]", midnight - 30*time.Second},
		"limit, 24h, noon": {"24h", "", "  at: [80%]", noon},
		"limit, 1m":        {"1m", "", "  at: [80%]", midnight - 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, true, c.event+"\n"+
				"ingest: {regions: [US, GB], pages: 4, schedule: '* * * * *', stagger: 0s}")
			window, err := quota.ParseWindow(c.window, c.zone)
			must(t, err)
			e.cfg.Credentials[0].Limits[0].Window = window
			e.answers = []http.HandlerFunc{answer(401), answer(401)}
			day := time.Now().Truncate(24 * time.Hour)
			for i, after := range []time.Duration{0, 61 * time.Second, 122 * time.Second,
				25 * time.Hour} {
				e.redis.SetNow(t, day.Add(c.first+after))
				if i%3 == 0 || c.window == "1m" {
					e.spend(80)
				}
				e.host().Look(t.Context(), look, false)
			}
			e.sent("default", "default")
			if ids := e.ids; len(ids) != 4 || ids[0] != ids[1] || ids[1] != ids[2] ||
				ids[2] == ids[3] {
				t.Errorf("IDs %q", ids)
			}
		})
	}
}

// TestTargets: each target has its own claim, so a failing target does not repeat notifications to
// other targets.
func TestTargets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	e := newEnv(t, true, "  command: [sh, -c, 'cat >> "+out+"; env | grep SECRET >> "+out+"; true']\n"+
		"  at: [80%]")
	e.answers = []http.HandlerFunc{answer(404)}
	e.spend(80)
	e.host().Look(t.Context(), look, true)
	e.redis.SetNow(t, time.Now().Add(61*time.Second))
	e.host().Look(t.Context(), look, true)
	e.sent("80%")
	text, err := os.ReadFile(out)
	must(t, err)
	if strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"percent":80`) {
		t.Errorf("the command got %s", text)
	}
}

// TestConditions: each condition is one event.
func TestConditions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false, "  on: [forecast, suspended, unpriced, stale_prices, missed_ticks]")
	ctx, l := t.Context(), e.ledger
	now, err := l.Time(ctx)
	must(t, err)
	must(t, l.Suspend(ctx, quota.Suspension{Credential: "key1", Bucket: "default",
		Until: now.Add(2 * time.Hour), By: "alice", Reason: "key <!channel> @here"}))
	e.host().Look(ctx, look, true)
	e.host().Look(ctx, look, true)
	e.sent("suspended until")
	if text := e.texts[0]; strings.ContainsAny(text, "<>@") || !strings.Contains(text, "by alice") {
		t.Errorf("mentions somebody: %s", text)
	}
	must(t, l.Suspend(ctx, quota.Suspension{Credential: "key1", Bucket: "default", Until: now}))
	_, err = l.Charge(ctx, quota.Charge{ID: quota.NewID(now), Credential: "key1",
		Limits: e.cfg.Credentials[0].Limits, Costs: []quota.Cost{{Bucket: "default", Units: 1}},
		Labels: quota.Labels{quota.LabelUnlisted: "model-9"}})
	must(t, err)
	n := e.host()
	n.Look(ctx, look, false)
	e.host().Look(ctx, look, false)
	e.mu.Lock()
	text := strings.Join(e.texts, "\n")
	e.mu.Unlock()
	if strings.Count(text, "no row for model-9") != 1 {
		t.Errorf("sent %s", text)
	}
}

func (e *env) results() string {
	var all strings.Builder
	for _, r := range notify.Test(e.Context(), e.cfg, os.Environ()) {
		text, err := json.Marshal(r)
		must(e, err)
		all.Write(append(text, '\n'))
	}
	return all.String()
}

// TestSecretsAreNotShown: even if a receiver's response repeats the request, errors contain neither
// the path of the URL nor the secret.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false, "")
	e.answers = []http.HandlerFunc{
		func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no such path: "+r.URL.Path, http.StatusNotFound)
		}}
	got := e.results()
	if strings.Contains(got, "T012345") || strings.Contains(got, secret) ||
		!strings.Contains(got, "responds with 404") {
		t.Error(got)
	}
	// Nothing listens on the local port of a connection, and no other process can take it.
	conn, err := net.Dial("tcp", e.receiver.Listener.Addr().String())
	must(t, err)
	defer conn.Close()
	e.cfg.Notify.URL = "http://" + conn.LocalAddr().String() + "/services/T012345"
	if got := e.results(); strings.Contains(got, "T012345") || !strings.Contains(got, "refused") {
		t.Error(got)
	}
}

// TestMissedTicks: the missed ticks of all lanes in an hour are one notification.
func TestMissedTicks(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false, "  on: [missed_ticks]")
	n := e.host()
	lanes, err := e.cfg.Lanes()
	must(t, err)
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	n.Missed("key1", lanes[0], 3, at, "no daemon ran")
	n.Missed("key1", lanes[1], 1, at, "no daemon ran")
	n.Look(context.Background(), look, true)
	n.Look(context.Background(), look, true)
	e.sent("3 ticks of " + lanes[0].Name() + ", the last at 2026-06-01 12:00:00Z: no daemon ran; 1 tick of")
}

// signature returns what Standard Webhooks requires, under the key of secret.
func signature(h http.Header, body []byte) string {
	mac := hmac.New(sha256.New, []byte("twenty-four bytes of key"))
	io.WriteString(mac, h.Get("webhook-id")+"."+h.Get("webhook-timestamp")+"."+string(body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
