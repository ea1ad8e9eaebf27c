package notify_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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

func (e *env) results() string {
	var all strings.Builder
	for _, r := range notify.Test(e.Context(), e.cfg, os.Environ()) {
		text, err := json.Marshal(r)
		must(e, err)
		all.Write(append(text, '\n'))
	}
	return all.String()
}

// signature returns what Standard Webhooks requires, under the key of secret.
func signature(h http.Header, body []byte) string {
	mac := hmac.New(sha256.New, []byte("twenty-four bytes of key"))
	io.WriteString(mac, h.Get("webhook-id")+"."+h.Get("webhook-timestamp")+"."+string(body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
