//go:build interop

package interop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"quotabudget/internal/cli/clitest"
)

// TestCrontabLines runs each crontab line of the README, the docs and the deploy folder under
// Debian's cron, on a machine that is set up as docs/operations.md says. Every line must find its
// programs and the configuration of the machine, and none may make a ledger in the home folder.
func TestCrontabLines(t *testing.T) {
	m := newCronMachine(t)
	lines := documentedLines(t)
	for i, l := range lines {
		m.install(fmt.Sprintf("line%d", i), l)
	}
	runUntilEnd(t, cron(t, m.dir, mounts))
	eventually(t, func() bool { return len(m.codes()) == len(lines) },
		func() any { return m.codes() })
	for name, code := range m.codes() {
		if code != "0" {
			out, _ := os.ReadFile(filepath.Join(m.dir, "results", name+".out"))
			t.Errorf("%s exits with %s: %s", name, code, out)
		}
	}
	if _, err := os.Stat(filepath.Join(m.dir, "home", ".local")); err == nil {
		t.Error("a line made a ledger of its own in the home folder")
	}
	spent := spentBy(t, []string{"QUOTA_CONFIG=" + filepath.Join(m.dir, "seen.yaml")})
	if spent["backfill"] == 0 {
		t.Errorf("the ledger of the machine has no charges of backfill: %v", spent)
	}
}

// documentedLine is a crontab line and the variables set above it in its block.
type documentedLine struct{ where, variables, command string }

var (
	cronLine     = regexp.MustCompile(`^\s*(?:[-0-9*/,]+\s+){5}(\S.*)$`)
	cronVariable = regexp.MustCompile(`^\s*[A-Z_]+=`)
)

// documentedLines returns the lines of all pages.
func documentedLines(t *testing.T) (lines []documentedLine) {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	must(t, err)
	for _, page := range append(pages, "../README.md", "../deploy/crontab") {
		variables := ""
		for line := range strings.Lines(read(t, page)) {
			line = strings.TrimRight(line, "\n")
			found := cronLine.FindStringSubmatch(line)
			switch {
			case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "## "):
				variables = ""
			case cronVariable.MatchString(line):
				variables += strings.TrimSpace(line) + "\n"
			case found != nil:
				lines = append(lines, documentedLine{page, variables, found[1]})
			}
		}
	}
	if len(lines) < 5 {
		t.Fatalf("%d crontab lines are documented", len(lines))
	}
	return lines
}

// cronMachine is the part of the file system that the lines see.
type cronMachine struct {
	*testing.T
	dir string
}

// newCronMachine copies the programs and /etc, and sets up /etc/quota and /var/lib/quota.
func newCronMachine(t *testing.T) *cronMachine {
	t.Helper()
	m := &cronMachine{t, t.TempDir()}
	standin := launch(t, nil, "ingestor", "standin", "--listen", "127.0.0.1:0", "--key", key,
		"--service-account", filepath.Join(m.dir, "reader.json"))
	for _, folder := range []string{"home", "lib/quota", "programs", "spool", "results"} {
		must(t, os.MkdirAll(filepath.Join(m.dir, folder), 0o755))
	}
	run(t, root, "cp", "-a", "/etc", filepath.Join(m.dir, "etc"))
	run(t, root, "cp", clitest.Program(t, "quotactl"), clitest.Program(t, "ingestor"),
		filepath.Join(m.dir, "programs"))
	must(t, errors.Join(os.RemoveAll(filepath.Join(m.dir, "etc/cron.d")),
		os.RemoveAll(filepath.Join(m.dir, "etc/crontab"))))
	run(t, root, "sed", "-i", "s,^root:.*,root:x:0:0:root:"+m.dir+"/home:/bin/sh,",
		filepath.Join(m.dir, "etc/passwd"))
	write(m.T, m.dir, "etc/quota/key", key)
	text := `
ledger: sqlite://LIB/ledger.db
catalog: sqlite://LIB/catalog.db
youtube: {endpoint: "` + standin.address + `"}
credentials:
  - name: default
    api_key: {file: /etc/quota/key}
    project: standin-project
    service_account: {file: ` + m.dir + `/reader.json, endpoint: "` + standin.address + `"}
`
	write(m.T, m.dir, "etc/quota/quota.yaml", strings.ReplaceAll(text, "LIB", "/var/lib/quota"))
	write(m.T, m.dir, "seen.yaml", strings.ReplaceAll(text, "LIB", m.dir+"/lib/quota"))
	write(m.T, m.dir, "shell", `#!/bin/sh
out=$(/bin/sh "$@" 2>&1)
code=$?
[ "$code" = 0 ] || printf '%s\n' "$out" > "`+m.dir+`/results/$LINE.out"
echo "$code" > "`+m.dir+`/results/$LINE"
`)
	must(t, os.Chmod(filepath.Join(m.dir, "shell"), 0o755))
	return m
}

// mounts show the lines this machine.
const mounts = `
mount --bind DIR/etc /etc
mount --bind DIR/lib /var/lib
mount --bind DIR/programs /usr/local/bin`

// install writes a file for cron.d that runs the line each minute, and makes the scripts that it
// names.
func (m *cronMachine) install(name string, l documentedLine) {
	m.Helper()
	write(m.T, m.dir, "etc/cron.d/"+name, "SHELL="+m.dir+"/shell\nLINE="+name+"\n"+l.variables+
		"* * * * * root "+l.command+"\n")
	script := regexp.MustCompile(`(/usr/local/bin/|\./|\$HOME/|~/)([\w./-]+)`)
	for _, s := range script.FindAllStringSubmatch(l.command, -1) {
		path := filepath.Join(m.dir, "home", s[2])
		if s[1] == "/usr/local/bin/" {
			path = filepath.Join(m.dir, "programs", s[2])
		}
		if _, err := os.Stat(path); err != nil {
			must(m.T, os.MkdirAll(filepath.Dir(path), 0o755))
			must(m.T, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
		}
	}
	m.Logf("%s is %s: %s", name, l.where, l.command)
}

// codes returns the exit codes of the lines that have run.
func (m *cronMachine) codes() map[string]string {
	codes := make(map[string]string)
	files, err := filepath.Glob(filepath.Join(m.dir, "results", "*[0-9]"))
	must(m.T, err)
	for _, file := range files {
		code, err := os.ReadFile(file)
		must(m.T, err)
		if len(code) > 0 {
			codes[filepath.Base(file)] = strings.TrimSpace(string(code))
		}
	}
	return codes
}
