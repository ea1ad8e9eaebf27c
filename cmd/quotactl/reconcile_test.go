package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/bill"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// metered is a stand-in that reports its meter, and a configuration for it.
type metered struct {
	*testing.T
	*standin.YouTube
	config, ledger, key string
	url                 string // of a stand-in that reports bills
	secrets             []string
}

const meteredConfig = `ledger: %s
credentials:
  - name: key1
    api_key: {env: NONE}
    service_account: {file: %s, endpoint: %s}
    project: %s
    limits:
      - {bucket: default, units: 10000, window: 24h}
      - {bucket: default, units: 10000, window: day, timezone: America/Los_Angeles}
      - {bucket: search_list, units: 100, window: day, timezone: America/Los_Angeles}
`

func newMetered(t *testing.T, ledger string) *metered {
	t.Helper()
	dir := t.TempDir()
	m := &metered{T: t, YouTube: &standin.YouTube{}, config: filepath.Join(dir, "quota.yaml"),
		ledger: ledger, key: filepath.Join(dir, "reader.json")}
	if ledger == "" {
		m.ledger = "sqlite://" + dir + "/ledger.db"
	}
	account, key, err := standin.NewAccountKey("p1", "https://oauth2.googleapis.com/token")
	must(t, err)
	must(t, os.WriteFile(m.key, key, 0o600))
	m.secrets = []string{"PRIVATE", string(key[200:260]), "standin.", "assertion"}
	m.Cloud = standin.Cloud{Project: "p1", Accounts: []*standin.ServiceAccount{account}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.configure(server.URL, "p1")
	return m
}

func (m *metered) configure(endpoint, project string) {
	text := fmt.Sprintf(meteredConfig, m.ledger, m.key, endpoint, project)
	must(m, os.WriteFile(m.config, []byte(text), 0o600))
}

// run runs the program, which must exit with the code and print all of want.
func (m *metered) run(code int, command string, want ...string) (out string) {
	m.Helper()
	args := append(strings.Fields(command), "--log-level", "debug")
	got, stdout, stderr := call(m.T, args, "QUOTA_CONFIG", m.config)
	for _, secret := range m.secrets {
		if strings.Contains(stdout+stderr, secret) {
			m.Errorf("%s: prints %q of the key, or a token:\n%s%s", command, secret, stdout, stderr)
		}
	}
	if got != code {
		m.Errorf("%s: exit code %d, want %d\n%s%s", command, got, code, stdout, stderr)
	}
	for _, text := range want {
		if !strings.Contains(stdout+stderr, text) {
			m.Errorf("%s: does not say %q:\n%s%s", command, text, stdout, stderr)
		}
	}
	return stdout
}

// spent books units in the ledger on the previous upstream day.
func (m *metered) spent(bucket string, units int64) {
	m.Helper()
	m.run(0, fmt.Sprintf("adjust --bucket %s --units %d --reason test --at %s", bucket, units,
		m.Yesterday().UTC().Format(time.RFC3339)))
}

func TestReconcile(t *testing.T) {
	for name, ledger := range map[string]func(t *testing.T) string{
		"sqlite": func(*testing.T) string { return "" },
		"redis": func(t *testing.T) string {
			return redistest.Start(t, redistest.Options{}).URL()
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMetered(t, ledger(t))
			m.run(0, "reconcile --lag 0s")

			m.spent("default", 100)
			m.Use(m.Yesterday(), "default", 120)
			m.spent("search_list", 7)
			m.Use(m.Yesterday(), "search_list", 4)
			m.spent("video_insert", 2)
			m.run(1, "reconcile --lag 0s -o json",
				`"bucket":"default","metric":"youtube.googleapis.com/default","from":"`,
				`"settled":true,"ours":100,"theirs":120,"verdict":"more","correction":20,"applied":false`,
				`"settled":true,"ours":7,"theirs":4,"verdict":"less","correction":-3,"applied":false`,
				`"ours":2,"theirs":null,"verdict":"unknown","correction":0,"applied":false`)
			m.run(1, "reconcile --lag 0s", "google counted more", "google counted less",
				"google reports nothing", "something else spends from project p1",
				"to correct: 2; run quotactl reconcile --apply")
			m.run(0, "reconcile --lag 0s --apply", "corrected")
			m.run(0, "reconcile --lag 0s -o json",
				`"ours":120,"theirs":120,"verdict":"agrees","correction":0`,
				`"ours":4,"theirs":4,"verdict":"agrees","correction":0`)
			before := m.run(0, "log -o json")
			m.run(0, "reconcile --lag 0s --apply")
			if after := m.run(0, "log -o json"); after != before {
				t.Errorf("a second run changed the log:\n%s\n%s", before, after)
			}
			m.run(0, "log", "google counted 120 units and the ledger 100, from ",
				"source=reconcile", "taken_off=3")
			m.run(0, "ledger check")
		})
	}
}

// Unsettled or unknown figures reduce nothing.
func TestReconcileWaits(t *testing.T) {
	m := newMetered(t, "")
	m.spent("default", 100)
	m.Use(m.Yesterday(), "default", 70)
	m.run(0, "reconcile --lag 6h --apply --days 1")
	m.Cloud.Fault = "empty"
	m.run(0, "reconcile --lag 0s --apply", "google reports nothing")
	m.Cloud.Fault = ""
	m.run(0, "reconcile --lag 0s --apply", "corrected")
}

// Limits that differ are reported with the line to write.
func TestReconcileLimits(t *testing.T) {
	m := newMetered(t, "")
	m.SetLimit("default", 20_000)
	m.SetLimit("search_list", 0)
	m.run(0, "reconcile", "google allows 20000 of default, and quota.yaml 10000 (24h)",
		"write {bucket: default, units: 20000, window: day}",
		"google allows 0 of search_list, and quota.yaml 100 (day)")
	m.run(0, "reconcile -o json", `{"bucket":"default","window":"24h","ours":10000,"theirs":20000}`)
	m.Cloud.Fault = "no-limits-role"
	m.run(77, "reconcile", "Permission serviceusage.quotas.get denied",
		"--role roles/serviceusage.serviceUsageViewer")
}

// Each problem is reported with a command to type, and has its exit code.
func TestReconcileFails(t *testing.T) {
	m := newMetered(t, "")
	const email = "quota-reader@p1.iam.gserviceaccount.com"
	for _, c := range []struct {
		fault string
		code  int
		want  string
	}{
		{"no-usage-role", 77, "hint: gcloud projects add-iam-policy-binding p1 --member " +
			"serviceAccount:" + email + " --role roles/monitoring.viewer"},
		{"usage-disabled", 77, "hint: gcloud services enable monitoring.googleapis.com --project p1"},
		{"limits-disabled", 77, "hint: gcloud services enable serviceusage.googleapis.com --project p1"},
		{"503", 69, "Cloud Monitoring answered 503"},
		{"key-deleted", 77, "the token server answered 400 invalid_grant: Invalid JWT Signature."},
	} {
		m.Cloud.Fault = c.fault
		m.run(c.code, "reconcile", c.want)
	}
	m.Cloud.Fault = ""

	m.configure("http://127.0.0.1:1/", "p1")
	m.run(69, "reconcile", "Cloud Monitoring cannot be reached", "try again later")
	m.ledger = "redis://127.0.0.1:1/0"
	m.configure("http://127.0.0.1:1/", "p1")
	m.run(69, "reconcile", "ledger cannot be reached")
	m.ledger = "sqlite:ledger.db"
	m.configure("http://127.0.0.1:1/", "p1")
	must(t, os.WriteFile(m.key, []byte(`{"type": "authorized_user", "x": "SECRET"}`), 0o600))
	if out := m.run(78, "reconcile", "is not the key of a service account"); strings.Contains(out,
		"SECRET") {
		t.Error(out)
	}
	must(t, os.Remove(m.key))
	m.run(78, "reconcile", "service account: file "+m.key+": no such file or directory")
	must(t, os.WriteFile(m.config, []byte("credentials: [{name: key1}]"), 0o600))
	m.run(78, "reconcile", "credential key1 has no service_account",
		"hint: an API key cannot read quota")
	must(t, os.WriteFile(m.config, []byte("credentials: [{name: key1, upstream: openai}]"), 0o600))
	m.run(78, "reconcile", "credential key1 has no admin_key\n", "write admin_key: {env: VARIABLE}",
		"hint: openai reports this to an admin key")
	must(t, os.WriteFile(m.config, []byte("credentials: [{name: key1, upstream: generic}]"), 0o600))
	m.run(64, "reconcile", "generic does not report this by any means that its price list names")
	m.run(64, "reconcile --days 4", "--days 4: must be from 1 to 3")
	m.run(64, "reconcile --lag 73h", "--lag 73h0m0s: must be from 0s to 72h")
}

// Two credentials of one project: Google counts them together, and reconcile does, too.
func TestReconcileShared(t *testing.T) {
	m := newMetered(t, "")
	text, err := os.ReadFile(m.config)
	must(t, err)
	_, one, _ := strings.Cut(string(text), "  - name: key1\n")
	two := string(text) + "  - name: key2\n" + one
	must(t, os.WriteFile(m.config, []byte(two), 0o600))
	at := m.Yesterday().UTC().Format(time.RFC3339)
	m.run(0, "adjust --credential key1 --bucket default --units 60 --reason test --at "+at)
	m.run(0, "adjust --credential key2 --bucket default --units 50 --reason test --at "+at)
	m.Use(m.Yesterday(), "default", 40)
	if out := m.run(1, "reconcile --credential key1 --lag 0s --apply", "google counted less",
		"correct them with quotactl adjust --credential NAME"); strings.Contains(out, "to correct: ") {
		t.Errorf("after a correction that failed:\n%s", out)
	}
	m.Use(m.Yesterday(), "default", 65)
	m.run(1, "reconcile --credential key1 --lag 0s -o json", `"shared_with":["key2"]`,
		`"ours":110,"theirs":105,"verdict":"less","correction":-5`)
	m.run(0, "reconcile --credential key1 --lag 0s --apply", "include [key2], of the same project")
	m.run(0, "reconcile --credential key2 --lag 0s", "agrees")
}

// TestReconcileEveryHour simulates three days over the end of summer time, one of 25 hours. Some
// programs spend through the gate and some past it, some calls are never billed, and the meter is
// late. The ledger is corrected every hour. It never has less than the meter shows, and finally has
// each day's bill.
func TestReconcileEveryHour(t *testing.T) {
	t.Parallel()
	m := newMetered(t, "")
	now := time.Date(2026, 10, 31, 7, 0, 0, 0, time.UTC)
	m.Now, m.Cloud.Lag = func() time.Time { return now }, 7*time.Minute
	l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	defer l.Close()
	l.Now = m.Now
	cfg, err := config.Load(t.Context(), m.config, os.Getenv)
	must(t, err)
	a := &app{cli.Common{Stdout: io.Discard, Stderr: io.Discard, Getenv: os.Getenv, Output: "json"}}
	cred := cfg.Credentials[0]
	g := &gate{cred.Budget(l, cfg.Table(cred), a.Logger()), l, cfg, cred}
	dice := rand.New(rand.NewPCG(1, 2))

	billed := map[string]int64{} // by day
	day := func(at time.Time) string {
		begin, _ := cfg.Table(cred).Reset("default").Bounds(at)
		return begin.UTC().Format(time.RFC3339)
	}
	use := func(units int64) {
		m.Use(now, "default", units)
		billed[day(now)] += units
	}
	flags := reconcileFlags{apply: true, days: 3, lag: 15 * time.Minute}
	for range 300 {
		now = now.Add(time.Duration(10+dice.IntN(10)) * time.Minute)
		spent := 1 + dice.Int64N(9)
		_, err := g.Charge(t.Context(), quota.Call{Bucket: "default", Units: spent})
		must(t, err)
		if dice.IntN(5) > 0 { // otherwise it was never billed
			use(spent)
		}
		if dice.IntN(4) == 0 {
			use(1 + dice.Int64N(20))
		}
		if dice.IntN(4) > 0 {
			continue
		}
		must(t, a.reconciled(t.Context(), g, flags))
		for _, d := range bill.Days(cfg.Table(cred).Reset("default"), now, 3, flags.lag,
			quota.Retention, true) {
			after, until := d.Span()
			ours, err := l.Between(t.Context(), "key1", "default", after, until)
			must(t, err)
			if theirs := m.Shown(d.Begin, d.Until)["default"]; ours < theirs {
				t.Fatalf("at %s: %d units since %s, and Google has counted %d",
					now, ours, d.Begin, theirs)
			} else if d.Settled && ours != billed[day(d.Begin)] {
				t.Fatalf("at %s: %d units on %s, and %d were billed", now, ours, d.Begin,
					billed[day(d.Begin)])
			}
		}
		found, err := l.Check(t.Context(), "key1", "default", false)
		if err != nil || len(found) > 0 {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	if len(billed) < 3 {
		t.Errorf("it was billed on %v", billed)
	}
}
