//go:build interop

package interop

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
)

// adapters are the programs with the adapters of examples/adapters.
var adapters = []struct {
	name    string
	program func(t *testing.T, dir, url string) *exec.Cmd
}{
	{"river", func(t *testing.T, dir, url string) *exec.Cmd {
		return exec.Command(goAdapter(t, dir, "river"), url, filepath.Join(dir, "river.db"))
	}},
	{"asynq", func(t *testing.T, dir, url string) *exec.Cmd {
		server := redistest.Start(t, redistest.Options{})
		return exec.Command(goAdapter(t, dir, "asynq"), url, server.URL())
	}},
	{"celery", func(t *testing.T, dir, url string) *exec.Cmd {
		need(t, dir, python, "-c", "import celery")
		server := redistest.Start(t, redistest.Options{})
		return exec.Command(python, gather(t, dir, "celery_main.py"), url, server.URL())
	}},
	{"airflow", func(t *testing.T, dir, url string) *exec.Cmd {
		return exec.Command(python, gather(t, dir, "airflow_main.py"), url)
	}},
	{"express", func(t *testing.T, dir, url string) *exec.Cmd {
		modules(t, dir)
		need(t, dir, "node", "-e", "require('express')")
		return exec.Command("node", gather(t, dir, "express_main.mjs"), url)
	}},
}

func goAdapter(t *testing.T, dir, name string) string {
	t.Helper()
	binary := filepath.Join(dir, name)
	run(t, filepath.Join(root, "examples/adapters"), "go", "build", "-o", binary, "./"+name)
	return binary
}

// gather puts a program into a folder with the clients and adapters, as their users do, and returns
// its path.
func gather(t *testing.T, dir, program string) string {
	t.Helper()
	for _, file := range []string{"clients/python/quotabudget.py", "clients/node/quotabudget.mjs",
		"examples/adapters/celery_quota.py", "examples/adapters/airflow_quota.py",
		"examples/adapters/express_quota.mjs", "interop/testdata/adapters/" + program} {
		write(t, dir, filepath.Base(file), read(t, filepath.Join(root, file)))
	}
	return filepath.Join(dir, program)
}

// TestAdapters runs one call by each library while the only unit is spent: it waits until the
// moment at which the unit comes free, and then runs at its first attempt.
func TestAdapters(t *testing.T) {
	for _, a := range adapters {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s := startLedger(t, "", "{bucket: default, units: 1, window: 20s}", "")
			dir := t.TempDir()
			c := a.program(t, dir, s.server.address)
			var log strings.Builder
			c.Dir, c.Stderr = dir, &log
			quotactl(t, s.vars, &struct{}{}, "spend", "--units", "1")
			free := time.Time(s.bucket(t, "default").Limits[0].NextFreeAt)
			out, err := c.Output()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if err != nil || len(lines) != 2 || lines[1] != "done at attempt 1" {
				t.Fatalf("%v: %s%s", err, out, &log)
			}
			until, err := time.Parse("denied until "+time.RFC3339Nano, lines[0])
			must(t, err)
			if wait := until.Sub(free); wait < 0 || wait > 2*time.Second {
				t.Errorf("it is to run again %v after the unit comes free", wait)
			}
		})
	}
}
