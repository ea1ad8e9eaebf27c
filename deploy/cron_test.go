package deploy_test

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"quotabudget/internal/standin"
)

// machine is a machine on which the test follows the manual. Full paths in the manual are below
// root.
type machine struct {
	*testing.T
	root     string
	upstream string
	env      []string // of a login shell
}

// TestCron follows the section on cron in docs/operations.md to the letter, and then runs the lines
// of the crontab as cron does, with a nearly empty environment. cron would mail what a line prints.
func TestCron(t *testing.T) {
	t.Parallel()
	server := &standin.YouTube{Keys: []string{"the-key"}}
	m := newMachine(t, serve(t, server))
	_, section, _ := strings.Cut(read(t, "../docs/operations.md"), "\n## From cron\n")
	section, _, _ = strings.Cut(section, "\n## ")
	setup := blocks(section, "sh")
	if len(setup) != 2 {
		t.Fatalf("%d blocks of commands, want the setting up and the first look", len(setup))
	}
	m.shell(setup[0])
	m.rootConfiguration()
	m.shell(setup[1])

	lines := blocks(section, "crontab")[0]
	if got, want := jobs(lines), jobs(read(t, "crontab")); !slices.Equal(got, want) {
		t.Errorf("docs/operations.md and deploy/crontab differ:\n%q\n%q", got, want)
	}
	sweep, purge := m.job(lines, "ingestor once"), m.job(lines, "ingestor purge")
	short := m.job(lines, "quotactl forecast")
	chart := "/usr/local/bin/ingestor chart CA"
	m.mails("a sweep that is complete", sweep)
	m.shell(chart)
	m.mails("old data deleted", purge)
	m.mails("nothing runs short", short)

	lock, err := os.OpenFile(m.path("var/lib/quota/sweep.lock"), os.O_RDWR, 0)
	must(t, err)
	must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	before := server.Counts().Requests
	m.mails("another sweep is under way", sweep)
	if after := server.Counts().Requests; after != before {
		t.Errorf("%d requests while another sweep held the lock", after-before)
	}
	lock.Close()

	server.SetLimit("default", 34)
	m.mails("the upstream says that the day's units are gone", sweep)
	m.mails("and so says the ledger", sweep)
	m.mails("that is reported once a day", short, "suspended", `trending +default +\d+`)
	server.SetLimit("default", 10000)
	m.shell("/usr/local/bin/quotactl resume --bucket default")

	key, config := m.path("etc/quota/key"), m.path("etc/quota/quota.yaml")
	write(t, key, "another-key")
	m.mails("the key is refused", sweep, "ingestor: .*bad credential", "hint: ")
	must(t, os.Remove(key))
	m.mails("there is no key", sweep,
		"ingestor: api key: file .*/etc/quota/key: no such file", "hint: ")
	write(t, key, "the-key")
	text := read(t, config)
	write(t, config, text+"\nlimit: {}\n")
	m.mails("the configuration is wrong", sweep,
		`quota.yaml:\d+: unknown key "limit"`)
	m.mails("also for the deletion", purge, `unknown key "limit"`)
	write(t, config, text)
	write(t, config, text+"\ningest: {regions: [CA]}\n")
	server.SetFaults("503")
	m.mails("the upstream is down", sweep, "CA +failed", "HTTP 503", "hint: ")
}

func newMachine(t *testing.T, upstream string) *machine {
	me, err := user.Current()
	must(t, err)
	m := &machine{T: t, root: t.TempDir(), upstream: upstream}
	m.env = []string{
		"HOME=" + m.path("home"), "USER=" + me.Username, "LOGNAME=" + me.Username,
		"PATH=" + m.path("sudo") + ":/usr/bin:/bin",
		"QUOTA_CONFIG=" + m.path("etc/quota/quota.yaml"),
	}
	// sudo may be missing, and nothing here needs root.
	write(t, m.path("sudo/sudo"), "#!/bin/sh\nexec \"$@\"\n")
	write(t, m.path("home/key"), "the-key\n")
	err = errors.Join(os.Chmod(m.path("sudo/sudo"), 0o700),
		os.MkdirAll(m.path("usr/local/bin"), 0o700),
		os.Symlink(filepath.Dir(program(t, "quotactl")), m.path("home/bin")))
	must(t, err)
	return m
}

// path returns a path below the root.
func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// rooted moves the full paths in a text below the root.
func (m *machine) rooted(text string) string {
	paths := regexp.MustCompile(`/(usr/local/bin|etc/quota|var/lib/quota)\b`)
	return paths.ReplaceAllString(text, m.root+"/$1")
}

// shell runs commands of the manual.
func (m *machine) shell(commands string) {
	m.Helper()
	cmd := exec.CommandContext(m.Context(), "/bin/sh", "-euc", m.rooted(commands))
	cmd.Dir, cmd.Env = m.path("home"), m.env
	if out, err := cmd.CombinedOutput(); err != nil {
		m.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// rootConfiguration moves the paths in the file that config init has written below the root, and
// sets the stand-in as the upstream.
func (m *machine) rootConfiguration() {
	m.Helper()
	path := m.path("etc/quota/quota.yaml")
	text := read(m.T, path)
	for _, want := range []string{"sqlite:///var/lib/quota/", "{file: /etc/quota/key}"} {
		if !strings.Contains(text, want) {
			m.Errorf("quota.yaml does not name %s", want)
		}
	}
	write(m.T, path, m.rooted(text)+"\nyoutube: {endpoint: \""+m.upstream+"\"}\n")
}

// cronJob is a line of a crontab with the variables that are set above it.
type cronJob struct {
	command string
	env     []string
}

// job returns the first line that runs a command.
func (m *machine) job(crontab, command string) (j cronJob) {
	m.Helper()
	for line := range strings.Lines(m.rooted(crontab)) {
		line = strings.TrimSpace(line)
		if regexp.MustCompile(`^[A-Z_]+=`).MatchString(line) {
			j.env = append(j.env, line)
		}
		fields := regexp.MustCompile(`^(?:\S+\s+){5}(.*)$`).FindStringSubmatch(line)
		runs := strings.Contains(line, "/"+command)
		if fields != nil && !strings.HasPrefix(line, "#") && runs {
			j.command = fields[1]
			return j
		}
	}
	m.Fatalf("no line runs %s", command)
	return j
}

// mails runs a line as cron does, and requires that its output matches all of the patterns, or is
// empty if there are none.
func (m *machine) mails(why string, j cronJob, patterns ...string) {
	m.Helper()
	if strings.Contains(j.command, "%") {
		m.Error("a % ends a command in a crontab")
	}
	cmd := exec.CommandContext(m.Context(), "/bin/sh", "-c", j.command)
	cmd.Dir = m.path("home")
	bare := []string{"HOME=" + cmd.Dir, "LOGNAME=someone", "SHELL=/bin/sh", "PATH=/usr/bin:/bin"}
	cmd.Env = append(bare, j.env...)
	out, _ := cmd.CombinedOutput() // cron ignores the exit code
	if len(patterns) == 0 && len(out) > 0 {
		m.Errorf("%s: mailed:\n%s", why, out)
	}
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).Match(out) {
			m.Errorf("%s: no %q in the mail:\n%s", why, pattern, out)
		}
	}
}

// blocks returns the code blocks of a language.
func blocks(markdown, language string) (found []string) {
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```")
	for _, b := range block.FindAllStringSubmatch(markdown, -1) {
		found = append(found, b[1])
	}
	return found
}

// jobs returns the lines of a crontab that are neither empty nor comments.
func jobs(crontab string) (lines []string) {
	for line := range strings.Lines(crontab) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
