//go:build interop

package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"quotabudget/internal/cli/clitest"
)

// faster is the factor by which cron's clock is faster: a minute lasts two seconds. The programs
// that cron starts have the true time.
const faster = 30

// TestCron: Debian's cron runs a shell script, a Python script and a Node script, written without
// this project, under quotactl exec. They share the units of a credential with ingestor run.
// Together they need more units than there are, and the stand-in bills no more than the limit. cron
// runs in its own mount namespace, with its own spool.
func TestCron(t *testing.T) {
	t.Parallel()
	const limit = 60
	dir := t.TempDir()
	standin := launch(t, nil, "ingestor", "standin", "--listen", "127.0.0.1:0", "--key", key)
	config := write(t, dir, "quota.yaml", fmt.Sprintf(`
credentials:
  - {name: one, api_key: {env: YOUTUBE_API_KEY}, limits: [{bucket: default, units: %d, window: 2h}]}
ingest: {regions: [US], pages: 1, schedule: "@every 10s", stagger: 0s, listen: ""}
`, limit))
	const path = "/youtube/v3/i18nRegions?part=snippet"
	direct := standin.address + strings.TrimPrefix(path, "/") + "&key=" + key
	shell := write(t, dir, "shell.sh", "for i in 1 2; do curl -sf -o /dev/null '"+direct+
		"' || exit; done\n")
	python := write(t, dir, "report.py", `import os, urllib.request
n = 0
for _ in range(2):
    urllib.request.urlopen("`+direct+`").read()
    n += 1
os.write(int(os.environ["QUOTA_REPORT_FD"]), b"units=%d\n" % n)
`)
	node := write(t, dir, "crawl.js", `(async () => {
  for (let i = 0; i < 2; i++) {
    const answer = await fetch(process.env.QUOTA_PROXY + "`+path+`");
    if (!answer.ok) process.exit(1);
  }
})();
`)
	vars := []string{"QUOTA_CONFIG=" + config, "QUOTA_STATE_DIR=" + dir, "YOUTUBE_API_KEY=" + key,
		"YOUTUBE_ENDPOINT=" + standin.address}
	table := strings.Join(vars, "\n") + fmt.Sprintf(`
PATH=%s:%s:/usr/bin:/bin
MAILTO=""
* * * * * quotactl exec --units 2 --settle exit -- sh %s >> %s/out 2>&1
* * * * * quotactl exec --units 5 --settle report --label job=report -- /usr/bin/python3 %s >> %[4]s/out 2>&1
* * * * * quotactl exec --units 4 --settle proxy --label job=crawl -- node %[6]s >> %[4]s/out 2>&1
`, filepath.Dir(clitest.Program(t, "quotactl")), filepath.Dir(clitest.Program(t, "node")),
		shell, dir, python, node)
	write(t, dir, "spool/root", table)
	daemon := exec.Command("ingestor", "run")
	daemon.Env = append(os.Environ(), vars...)
	runUntilEnd(t, daemon)
	runUntilEnd(t, cron(t, dir, `
mount --bind DIR/none /etc/cron.d
mount --bind /dev/null /etc/crontab
`))

	jobs := []string{"shell", "report", "crawl", "trending"}
	var spent map[string]int64
	var out string
	sum := int64(0)
	eventually(t, func() bool {
		spent, sum = spentBy(t, vars), 0
		for _, units := range spent {
			sum += units
		}
		text, _ := os.ReadFile(filepath.Join(dir, "out"))
		out = string(text)
		return sum > limit-5 && strings.Contains(out, "not started: ")
	}, func() any { return fmt.Sprint(spent, "\n", out) })
	for _, name := range jobs {
		if spent[name] == 0 {
			t.Errorf("%s has spent nothing: %v\n%s", name, spent, out)
		}
	}
	if sum > limit {
		t.Errorf("%d units are booked: %v", sum, spent)
	}
	var counted struct{ Total map[string]int64 }
	counts(t, standin.address, &counted)
	if billed := counted.Total["default"]; billed == 0 || billed > limit {
		t.Errorf("the stand-in has billed %d units of %d: %v", billed, limit, counted)
	}
}

// cron returns Debian's cron with its own spool and more mounts, in which DIR is replaced by dir.
func cron(t *testing.T, dir, mounts string) *exec.Cmd {
	t.Helper()
	must(t, errors.Join(os.Mkdir(filepath.Join(dir, "none"), 0o755),
		os.Mkdir(filepath.Join(dir, "run"), 0o755)))
	must(t, os.Chmod(filepath.Join(dir, "spool"), 0o1730))
	write(t, dir, "pam", "account required pam_permit.so\nsession required pam_permit.so\n")
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		t.Fatalf("no libfaketime: scripts/install-interop installs it (%v)", err)
	}
	script := strings.NewReplacer("DIR", dir, "LIB", found[0], "FAST", fmt.Sprint(faster)).Replace(`
set -e
mount --make-rprivate /
` + mounts + `
mount --bind DIR/spool /var/spool/cron/crontabs
mount --bind DIR/run /run
mount --bind DIR/pam /etc/pam.d/cron
exec env LD_PRELOAD=LIB FAKETIME="+0 xFAST" cron -f`)
	return exec.Command("unshare", "-m", "sh", "-c", script)
}

// runUntilEnd starts a program, and ends it with the test.
func runUntilEnd(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", cmd.Path, out.String())
		}
	})
}

// spentBy returns the units in the log by job.
func spentBy(t *testing.T, vars []string) map[string]int64 {
	t.Helper()
	var log struct {
		Rows []struct {
			Key   string
			Units int64
		}
	}
	quotactl(t, vars, &log, "log", "--by", "job")
	spent := make(map[string]int64)
	for _, row := range log.Rows {
		spent[row.Key] += row.Units
	}
	return spent
}
