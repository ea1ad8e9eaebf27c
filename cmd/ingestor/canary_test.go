package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// canary returns a key of the real form, joined here so that no scanner reports a leak in this
// file.
func canary() string { return "AI" + "za" + "Sy" + strings.Repeat("Canary-_", 4) + "9" }

const (
	badKeyBody = `{"error":{"code":400,"message":"API key not valid: %[1]s.","errors":[` +
		`{"message":"key %[1]s","domain":"global","reason":"badRequest","location":"%[1]s"}],` +
		`"status":"INVALID_ARGUMENT","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID",` +
		`"domain":"googleapis.com","metadata":{"key":"%[1]s"}}]}}`
	reasonBody = `{"error":{"code":403,"errors":[{"reason":"%[1]s","domain":"%[1]s"}]}}`
	quotaBody  = `{"error":{"code":403,"message":"quota of %[1]s",` +
		`"errors":[{"reason":"quotaExceeded","domain":"youtube.quota"}],` +
		`"details":[{"metadata":{"quota_metric":"%[1]s"}}]}}`
)

// TestI8_CanaryKeyIsNowhere runs the programs in every way that could leak the key, with the key in
// a variable and in a file, and looks for it in everything they print and write: invariant I8. Only
// its header may contain it.
func TestI8_CanaryKeyIsNowhere(t *testing.T) {
	t.Parallel()
	if !quota.LooksSecret(canary()) || len(canary()) != 39 {
		t.Fatal("the canary does not look like a key")
	}
	const once = "ingestor once --region US"
	const spend = "quotactl spend --bucket default --units 1"
	checks := make(map[string]func(*testing.T))
	for name, test := range map[string]struct {
		program string
		code    int
		answer  http.HandlerFunc // nil for the stand-in, or for programs without requests
		faults  string
		env     string // additional variables
		asks    bool   // the program sends requests
	}{
		"complete":            {program: once, asks: true},
		"complete as JSON":    {program: once + " -o json", asks: true},
		"bad key echoed":      {once, 77, echo(400, "application/json", badKeyBody), "", "", true},
		"a reason that is it": {once, 1, echo(403, "application/json", reasonBody), "", "", true},
		"quota echoed": {once + " -o json", 75, echo(403, "application/json", quotaBody), "", "",
			true},
		"HTML echoed": {once, 69,
			echo(500, "text/html", "<html><title>No %[1]s</title>%[1]s</html>"), "", "", true},
		"not JSON":    {once + " -o json", 69, echo(200, "application/json", "%s"), "", "", true},
		"wrong types": {once, 1, echo(200, "application/json", `{"items":"%s"}`), "", "", true},

		"dropped":            {program: once + " -o yaml", faults: "drop", code: 69, asks: true},
		"cut off":            {program: once, faults: "cut", code: 69, asks: true},
		"throttled for good": {program: once, faults: "429-day", code: 75, asks: true},

		"upstream refuses": {program: once, env: "YOUTUBE_ENDPOINT=http://127.0.0.1:1/", code: 69},
		"upstream unknown": {program: once, code: 69,
			env: "YOUTUBE_ENDPOINT=https://nowhere.invalid/"},
		"ledger refuses": {program: once, code: 69, env: "QUOTA_LEDGER=redis://u:pw@127.0.0.1:1/0"},
		"key as endpoint": {program: once, code: 78,
			env: "YOUTUBE_ENDPOINT=http://127.0.0.1:1/?key=" + canary()},
		"key as ledger": {program: once, env: "QUOTA_LEDGER=" + canary(), code: 78},
		"key as catalogue": {program: once, env: "QUOTA_CATALOG=sqlite://" + canary() + "/c.db",
			code: 78},
		"key as config":     {program: once, env: "QUOTA_CONFIG=/" + canary(), code: 78},
		"key as region":     {program: once + " --region " + canary(), code: 64},
		"key as argument":   {program: once + " " + canary(), code: 64},
		"key to search for": {program: "ingestor search " + canary(), code: 64},
		"key as video":      {program: "ingestor video " + canary(), code: 64},
		"stand-in's key": {program: "ingestor standin --listen 127.0.0.1:0 --key=" + canary(),
			code: 64},
		"label":        {program: spend + " --label k=" + canary(), code: 64},
		"demo":         {program: "ingestor once --demo --region US"},
		"chart":        {program: "ingestor chart"},
		"status":       {program: "quotactl status"},
		"spend":        {program: spend},
		"config check": {program: "quotactl config check"},
	} {
		for _, from := range []string{"variable", "file"} {
			if from == "file" && test.code >= 64 && !test.asks {
				continue // the program ends before it reads the key
			}
			a := &aviary{answer: test.answer}
			if test.faults != "" {
				a.Faults = []string{test.faults}
			}
			state := t.TempDir()
			env := append(keyFrom(t, from), "QUOTA_STATE_DIR="+state,
				"YOUTUBE_ENDPOINT="+listening(t, a))
			if test.env != "" {
				env = append(env, test.env)
			}
			format := map[string]string{"variable": "text", "file": "json"}[from]
			args := append(strings.Fields(test.program), "--log-level", "debug",
				"--log-format", format)
			// all at once: most wait before they retry
			p := begin(t, env, args[0], args[1:]...)
			checks[name+"/"+from] = func(t *testing.T) {
				if code := p.code(); code != test.code {
					t.Errorf("exit code %d, want %d: %s", code, test.code, p.stderr.String())
				}
				a.wantNoLeak(t, p)
				if n := a.songs(); (n > 0) != test.asks {
					t.Errorf("%d requests had the key in their header", n)
				}
				wantNoFileWithKey(t, state)
			}
		}
	}
	for name, check := range checks {
		t.Run(name, check)
	}
}

// keyFrom returns an environment whose key is in a variable, or in a file that quota.yaml names.
func keyFrom(t *testing.T, from string) []string {
	t.Helper()
	if from == "variable" {
		return []string{"YOUTUBE_API_KEY=" + canary()}
	}
	file := configFile(t, "credentials: [{name: key1, api_key: {file: key}}]\n")
	key := filepath.Join(filepath.Dir(file), "key")
	must(t, os.WriteFile(key, []byte(canary()+"\n"), 0o600))
	return []string{"QUOTA_CONFIG=" + file}
}

// holdsKey finds the key, also one that was cut off.
func holdsKey(text []byte) bool { return bytes.Contains(text, []byte(canary()[:20])) }

// wantNoFileWithKey reads the ledger, the catalogue and the files next to them, byte by byte.
func wantNoFileWithKey(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if holdsKey(data) {
			t.Errorf("the key is in %s", path)
		}
		return err
	})
	must(t, err)
}

// TestI8_RedirectIsNotFollowed: following a redirect would send the key to its target.
func TestI8_RedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	stranger := &aviary{}
	elsewhere := listening(t, stranger)
	a := &aviary{answer: func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+"?key="+r.Header.Get("X-Goog-Api-Key"), http.StatusFound)
	}}
	p := begin(t, append(keyFrom(t, "variable"), "YOUTUBE_ENDPOINT="+listening(t, a)), "ingestor",
		"once", "--region", "US")
	if code := p.code(); code == 0 {
		t.Error("a redirect is a success")
	}
	a.wantNoLeak(t, p)
	if stranger.Counts().Requests != 0 {
		t.Error("the redirect was followed")
	}
}

// aviary is an upstream that looks for the canary in every request, and misbehaves as a test
// requires.
type aviary struct {
	standin.YouTube
	answer http.HandlerFunc // nil for the stand-in

	mu       sync.Mutex
	sung     int      // requests with the key in its header
	sighting []string // other places of the key
}

func (a *aviary) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.look(r)
	if a.answer != nil {
		a.answer(w, r)
		return
	}
	a.YouTube.ServeHTTP(w, r)
}

func (a *aviary) look(r *http.Request) {
	header := r.Header.Clone()
	mine := header.Values("X-Goog-Api-Key")
	header.Del("X-Goog-Api-Key")
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(mine) == 1 && mine[0] == canary() {
		a.sung++
	}
	if rest := fmt.Sprint(r.URL, header, r.Host, string(body)); strings.Contains(rest, canary()) {
		a.sighting = append(a.sighting, rest)
	}
}

// songs returns how many requests had the key in its header.
func (a *aviary) songs() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sung
}

func listening(t *testing.T, h http.Handler) string {
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL + "/"
}

// echo returns a handler whose body repeats the key.
func echo(status int, kind, form string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Echo", r.Header.Get("X-Goog-Api-Key"))
		w.WriteHeader(status)
		fmt.Fprintf(w, form, r.Header.Get("X-Goog-Api-Key"))
	}
}

// wantNoLeak checks what the upstream received and what an ended program printed.
func (a *aviary) wantNoLeak(t *testing.T, p *process) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, where := range a.sighting {
		t.Errorf("the upstream was sent the key elsewhere than in its header: %s", where)
	}
	if n := a.Counts().KeyInURL; n > 0 {
		t.Errorf("%d requests had a key in their URL", n)
	}
	for name, text := range map[string]string{"stdout": p.stdout.String(),
		"stderr": p.stderr.String()} {
		if holdsKey([]byte(text)) {
			t.Errorf("the key is on %s:\n%s", name, text)
		}
	}
}
