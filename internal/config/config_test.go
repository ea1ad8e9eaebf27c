package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
)

// env is an environment of its own.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// write puts text into a file of a new directory.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quota.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func load(t *testing.T, text string, pairs ...string) *Config {
	t.Helper()
	cfg, err := Load(t.Context(), write(t, text), env(append(pairs, "HOME", "/home/x")...))
	must(t, err)
	return cfg
}

func TestDefaults(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg, err := Search{System: "none.yaml",
		Getenv: env("HOME", "/home/x", "YOUTUBE_API_KEY", "k")}.Load(t.Context())
	must(t, err)
	if cfg.Ledger != "sqlite:///home/x/.local/state/quota/ledger.db" ||
		cfg.Catalog != "sqlite:///home/x/.local/state/quota/catalog.db" {
		t.Errorf("ledger %s, catalog %s", cfg.Ledger, cfg.Catalog)
	}
	want := Ingest{"default", []regions.Region{"US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"},
		4, 4, "0 */3 * * *", time.UTC, schedule.Stagger{Step: 5 * time.Minute}, false}
	if !reflect.DeepEqual(cfg.Ingest, want) {
		t.Errorf("ingest %+v", cfg.Ingest)
	}
	if len(cfg.Credentials) != 1 || cfg.Credentials[0].Name != "default" ||
		cfg.Credentials[0].Observe {
		t.Fatalf("credentials %+v", cfg.Credentials)
	}
	if got := cfg.Credentials[0].Limits; !reflect.DeepEqual(got, costs.Default().DefaultLimits()) {
		t.Errorf("limits %+v", got)
	}
	if key, err := cfg.Credentials[0].APIKey.Key(); key != "k" || err != nil {
		t.Errorf("key %q, %v", key, err)
	}
	if cfg.YouTube.Endpoint != "https://youtube.googleapis.com/" || cfg.File != "" {
		t.Errorf("endpoint %s, file %q", cfg.YouTube.Endpoint, cfg.File)
	}
}

// TestNothingInTheFile: a file that says nothing means the defaults.
func TestNothingInTheFile(t *testing.T) {
	for text, empty := range map[string]bool{"": true, "\n": true, "# all commented out\n": true,
		"---\n": true, "{}": false, "ingest:\ncredentials:\nyoutube:\ncosts:\n": false,
		"ingest:\n": false, "\ufeff# mark\n": true} {
		if cfg := load(t, text); len(cfg.Credentials) != 1 || cfg.Ingest.Pages != 4 ||
			cfg.Ingest.Parallel != 4 || cfg.Costs == nil || cfg.Empty != empty {
			t.Errorf("%q: %+v", text, cfg)
		}
	}
}

const full = `
ledger: redis://:pw@localhost:6379/0
catalog: sqlite:///var/lib/quota/catalog.db
credentials:
  - name: key1
    api_key: {env: MY_KEY}
    limits:
      - {bucket: default, units: 10_000, headroom: 500, window: 24h}
      - {bucket: default, units: 10000, headroom: 500, window: day, timezone: America/Los_Angeles}
      - {bucket: search_list, units: 0, window: day}
    mode: observe
    when_unreachable: {open: [youtube.videos.list]}
  - name: key2
    api_key: {file: key.txt}
youtube:
  endpoint: http://127.0.0.1:8080
ingest:
  credential: key2
  regions: [NO, us]
  pages: 2
  parallel: 8
  schedule: "@every 3h"
  timezone: Europe/Berlin
  stagger: 90s
`

func TestEverything(t *testing.T) {
	path := write(t, full)
	key := filepath.Join(filepath.Dir(path), "key.txt")
	must(t, os.WriteFile(key, []byte("k2\n"), 0o600))
	// without HOME: no state directory is needed
	cfg, err := Load(t.Context(), path, env("MY_KEY", "k1", "YOUTUBE_API_KEY", "unused"))
	must(t, err)
	la, _ := time.LoadLocation("America/Los_Angeles")
	one, two := cfg.Credentials[0], cfg.Credentials[1]
	want := []quota.Limit{
		{Bucket: "default", Units: 10000, Headroom: 500, Window: quota.Sliding(24 * time.Hour)},
		{Bucket: "default", Units: 10000, Headroom: 500,
			Window: quota.Window{Calendar: "day", Zone: la}},
		// the bucket's own reset
		{Bucket: "search_list", Window: quota.Window{Calendar: "day", Zone: la}},
	}
	if !slices.EqualFunc(one.Limits, want, func(a, b quota.Limit) bool {
		return reflect.DeepEqual(a, b) || a.Name() == b.Name() && a.Units == b.Units
	}) {
		t.Errorf("limits %+v", one.Limits)
	}
	if !one.Observe || one.Mode() != "observe" || two.Mode() != "enforce" ||
		!slices.Equal(one.Open, []string{"youtube.videos.list"}) {
		t.Errorf("credential %+v", one)
	}
	for i, key := range []string{"k1", "k2"} {
		if got, err := cfg.Credentials[i].APIKey.Key(); got != key || err != nil {
			t.Errorf("key %d: %q, %v", i, got, err)
		}
	}
	if len(two.Limits) != len(costs.Default().DefaultLimits()) {
		t.Errorf("a credential without limits has %d", len(two.Limits))
	}
	berlin, _ := time.LoadLocation("Europe/Berlin")
	in := Ingest{"key2", []regions.Region{"NO", "US"}, 2, 8, "@every 3h", berlin,
		schedule.Stagger{Step: 90 * time.Second}, true}
	if !reflect.DeepEqual(cfg.Ingest, in) {
		t.Errorf("ingest %+v", cfg.Ingest)
	}
	if cfg.YouTube.Endpoint != "http://127.0.0.1:8080/" {
		t.Errorf("endpoint %s", cfg.YouTube.Endpoint)
	}
}

func TestEnvironmentOverFile(t *testing.T) {
	cfg := load(t, "ledger: sqlite:file.db\nyoutube: {endpoint: https://a/}\n",
		"QUOTA_LEDGER", "redis://h:1/2", "QUOTA_CATALOG", "sqlite:c.db", "YOUTUBE_ENDPOINT",
		"https://b:1", "QUOTA_STATE_DIR", "/s")
	if cfg.Ledger != "redis://h:1/2" || cfg.Catalog != "sqlite:c.db" ||
		cfg.YouTube.Endpoint != "https://b:1/" {
		t.Errorf("%+v", cfg)
	}
	want := []string{"QUOTA_LEDGER", "QUOTA_CATALOG", "YOUTUBE_ENDPOINT"}
	if !slices.Equal(cfg.Environment, want) {
		t.Errorf("environment %q", cfg.Environment)
	}
}

func TestWhichFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file := func(path, state string) {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("ledger: sqlite:"+state+"\n"), 0o600))
	}
	system := filepath.Join(t.TempDir(), "quota.yaml")
	check := func(want, flag string, pairs ...string) {
		t.Helper()
		cfg, err := Search{Path: flag, System: system,
			Getenv: env(append(pairs, "HOME", dir)...)}.Load(t.Context())
		if err != nil || !strings.HasSuffix(cfg.Ledger, want) {
			t.Errorf("want %s: %+v, %v", want, cfg, err)
		}
	}
	check("/.local/state/quota/ledger.db", "")
	check("/xs/quota/ledger.db", "", "XDG_STATE_HOME", "/xs")
	check("/own/ledger.db", "", "XDG_STATE_HOME", "/xs", "QUOTA_STATE_DIR", "/own")
	check("/a%25%3Fb%23/ledger.db", "", "QUOTA_STATE_DIR", "/a%?b#")
	check(dir+"/rel/ledger.db", "", "QUOTA_STATE_DIR", "rel")
	file(system, "system")
	check("/system", "")
	file(dir+"/.config/quota/quota.yaml", "home")
	check("/home", "")
	file(dir+"/xdg/quota/quota.yaml", "xdg")
	check("/xdg", "", "XDG_CONFIG_HOME", dir+"/xdg")
	check("/home", "", "XDG_CONFIG_HOME", "xdg") // not absolute: ignored
	file("quota.yaml", "here")
	check("/here", "", "XDG_CONFIG_HOME", dir+"/xdg")
	file("env.yaml", "env")
	check("/env", "", "QUOTA_CONFIG", "env.yaml")
	file("flag.yaml", "flag")
	check("/flag", "flag.yaml", "QUOTA_CONFIG", "env.yaml")
	// a path in a file is relative to the file, and one in a variable to the working directory
	t.Chdir("/")
	check(dir+"/xdg/quota/xdg", "", "XDG_CONFIG_HOME", dir+"/xdg")
	check("sqlite:other", "", "XDG_CONFIG_HOME", dir+"/xdg", "QUOTA_LEDGER", "sqlite:other")
}

func TestPriceList(t *testing.T) {
	cfg := load(t, "costs: {profile: single-pool}")
	if price, _ := cfg.Costs.Price("youtube.search.list"); len(price) != 2 || cfg.CostsFile != "" {
		t.Errorf("%v", price)
	}
	path := write(t, "costs: own/costs.yaml")
	own := filepath.Join(filepath.Dir(path), "own")
	data, err := os.ReadFile("../../costs/youtube.yaml")
	must(t, err)
	must(t, os.Mkdir(own, 0o700))
	text := strings.Replace(string(data), "2026-06-01   #", "2031-01-01   #", 1)
	must(t, os.WriteFile(filepath.Join(own, "costs.yaml"), []byte(text), 0o600))
	cfg, err = Load(t.Context(), path, env("HOME", "/h"))
	if err != nil || cfg.Costs.Version != "2031-01-01" ||
		cfg.CostsFile != filepath.Join(own, "costs.yaml") {
		t.Errorf("%+v, %v", cfg, err)
	}
}

// The credential default has its key in the usual variable, whether it is in the file or not; no
// other has one.
func TestKeyOfDefault(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "env YOUTUBE_API_KEY",
		"credentials: [{name: default}]": "env YOUTUBE_API_KEY",
		"credentials: [{name: default, api_key: {env: MINE}}]": "env MINE",
		"credentials: [{name: key1}]":                          "none",
	} {
		cfg := load(t, text)
		if got := cfg.Credentials[0].APIKey.String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if _, err := load(t, "credentials: [{name: key1}]").Credentials[0].APIKey.Key(); err == nil ||
		err.Error() != "credential key1 has no api_key" {
		t.Error(err)
	}
}

func TestCredential(t *testing.T) {
	cfg := load(t, "credentials: [{name: key1}, {name: key2}]")
	if c, err := cfg.Credential("key2"); c.Name != "key2" || err != nil {
		t.Error(c, err)
	}
	if _, err := cfg.Credential(""); err == nil ||
		err.Error() != "several credentials are configured: key1, key2" {
		t.Error(err)
	}
	if _, err := cfg.Credential("kei1"); err == nil ||
		!strings.Contains(err.Error(), "did you mean key1?") {
		t.Error(err)
	}
	if c, err := load(t, "").Credential(""); c.Name != "default" || err != nil {
		t.Error(c, err)
	}
	if cfg.Ingest.Credential != "" {
		t.Errorf("of two credentials %s was chosen", cfg.Ingest.Credential)
	}
	b := cfg.Credentials[0].Budget(nil, cfg.Costs, nil)
	if costs, err := b.Costs(quota.Call{Method: "youtube.videos.list"}); err != nil ||
		costs[0].Units != 1 || b.Credential != "key1" {
		t.Error(costs, err)
	}
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
