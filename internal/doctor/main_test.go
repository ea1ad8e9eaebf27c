package doctor_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/config"
	"quotabudget/internal/doctor"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// plant is a setup with at most one fault: a quota.yaml, the environment, and a ledger.
type plant struct {
	variable string // ledger in the environment, which overrides the file
	dir      string
	yaml     string // the file after its ledger line
	ledger   string // URL; "" for a file in dir
	options  doctor.Options
	mode     os.FileMode // of quota.yaml
}

const healthy = `
credentials:
  - name: default
    api_key: {file: key}
`

func newPlant(t *testing.T) *plant {
	t.Helper()
	p := &plant{dir: t.TempDir(), yaml: healthy, mode: 0o600, options: doctor.Options{Days: 2,
		Now: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}}
	p.write(t, "key", "AIza-of-nobody", 0o600)
	return p
}

func (p *plant) write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	must(t, os.WriteFile(path, []byte(text), mode))
	chmod(t, path, mode) // regardless of the umask
	return path
}

func (p *plant) file() string { return filepath.Join(p.dir, "ledger.db") }

// examine runs the examination that the command runs.
func (p *plant) examine(t *testing.T) doctor.Result {
	t.Helper()
	if p.ledger == "" {
		p.ledger = "sqlite://" + p.file()
	}
	path := p.write(t, "quota.yaml", "ledger: "+p.ledger+p.yaml, p.mode)
	cfg, err := config.Load(t.Context(), path, func(name string) string {
		return map[string]string{"QUOTA_STATE_DIR": p.dir, "QUOTA_LEDGER": p.variable}[name]
	})
	if invalid, ok := err.(*config.Error); ok {
		return doctor.Unreadable(invalid)
	}
	must(t, err)
	r, err := doctor.Examine(t.Context(), cfg, p.options)
	must(t, err)
	return r
}

// do runs a command on a server, as its administrator.
func do(t *testing.T, s *redistest.Server, command ...any) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	if err := c.Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(command, err)
	}
}

// onRedis plants a fault in a server that is otherwise fine.
func onRedis(fault func(*testing.T, *plant, *redistest.Server)) func(*testing.T, *plant) {
	return func(t *testing.T, p *plant) {
		s := redistest.Start(t, redistest.Options{AOF: true})
		p.ledger = s.URL()
		fault(t, p, s)
	}
}

// redisDoes plants a fault with one command to the server.
func redisDoes(command string) func(*testing.T, *plant) {
	return onRedis(func(t *testing.T, _ *plant, s *redistest.Server) {
		var words []any
		for _, w := range strings.Fields(command) {
			words = append(words, w)
		}
		do(t, s, words...)
	})
}

// charge records 10 units of default through a ledger whose clock is ahead by the given time.
func charge(t *testing.T, p *plant, ahead time.Duration) { spend(t, p, "default", 10, ahead) }

func spend(t *testing.T, p *plant, bucket string, units int64, ahead time.Duration) {
	t.Helper()
	l, err := ledger.OpenFile(t.Context(), p.file())
	must(t, err)
	defer l.Close()
	l.Now = func() time.Time { return time.Now().Add(ahead) }
	limits := []quota.Limit{{Bucket: bucket, Units: 100, Window: quota.Sliding(time.Hour)}}
	d, err := l.Charge(t.Context(), quota.Charge{Credential: "default", ID: "1", Limits: limits,
		Costs: []quota.Cost{{Bucket: bucket, Units: units}}})
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
}

func exec(t *testing.T, p *plant, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", p.file())
	must(t, err)
	defer db.Close()
	_, err = db.Exec(statement)
	must(t, err)
}

func says(yaml string) func(*testing.T, *plant) {
	return func(_ *testing.T, p *plant) { p.yaml = yaml }
}

// sharing plants two credentials that use one key, with the given limits.
func sharing(one, two string) func(*testing.T, *plant) {
	return says(fmt.Sprintf(`
credentials:
  - {name: a, api_key: {file: key}, limits: [%s]}
  - {name: b, api_key: {file: key}, limits: [%s]}
ingest: {credential: a, regions: [US], schedule: '0 0 1 1 *'}
`, one, two))
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must(t, os.Chmod(path, mode))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantChecks compares the checks with findings, without duplicates.
func wantChecks(t *testing.T, r doctor.Result, want ...string) {
	t.Helper()
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Check)
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v: %+v", got, want, r.Findings)
	}
}
