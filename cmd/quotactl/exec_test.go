package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
)

// request is a test program that knows nothing of quotas: it requests $1 the number of times in $2,
// and exits with 1 at the first response other than 200.
func request() {
	times, err := strconv.Atoi(os.Args[2])
	for range times {
		var resp *http.Response
		if resp, err = http.Get(os.Args[1]); err != nil {
			break
		}
		if io.Copy(io.Discard, resp.Body); resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
			break
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// shell is a machine for tests, with one ledger.
type shell struct {
	*testing.T
	dir string
	env []string
}

func newShell(t *testing.T, ledger, config string) *shell {
	t.Helper()
	dir := t.TempDir()
	config = cmp.Or(config, "credentials: [{name: default}]\n")
	must(t, os.WriteFile(filepath.Join(dir, "quota.yaml"), []byte(config), 0o600))
	return &shell{t, dir, append(os.Environ(), "HOME="+dir, "QUOTA_STATE_DIR="+dir,
		"QUOTA_LEDGER="+ledger,
		"QUOTA_CONFIG="+filepath.Join(dir, "quota.yaml"))}
}

// onBoth runs a story on each kind of ledger, with a configuration.
func onBoth(t *testing.T, config string, story func(*shell)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		story(newShell(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"), config))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		story(newShell(t, redistest.Start(t, redistest.Options{}).URL(), config))
	})
}

// command is quotactl with arguments, not started.
func (s *shell) command(args ...string) *exec.Cmd {
	c := exec.Command("quotactl", args...)
	c.Env, c.Dir = s.env, s.dir
	return c
}

// begin starts quotactl, whose standard error is kept.
func (s *shell) begin(args ...string) *exec.Cmd {
	s.Helper()
	c := s.command(args...)
	c.Stderr = &bytes.Buffer{}
	must(s, c.Start())
	return c
}

// run runs quotactl, and returns its exit code and all its output.
func (s *shell) run(args ...string) (int, string) {
	s.Helper()
	out, err := s.command(args...).CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		s.Fatal(err)
	}
	code := 0
	if err != nil {
		code = err.(*exec.ExitError).ExitCode()
	}
	return code, string(out)
}

func (s *shell) want(code int, words string, args ...string) {
	s.Helper()
	if got, out := s.run(args...); got != code || !strings.Contains(out, words) {
		s.Errorf("%q: exit code %d, want %d and %q:\n%s", args, got, code, words, out)
	}
}

// exists waits until a file exists, and returns its content.
func (s *shell) exists(name string) string {
	s.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		if err == nil && len(text) > 0 {
			return strings.TrimSpace(string(text))
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.Fatalf("no file %s", name)
	return ""
}

const tenUnits = `credentials: [{name: key1, limits: [{bucket: default, units: 10, window: 24h},
  {bucket: search_list, units: 5, window: 24h}]}]`

// TestExecProxy: the requests of a command are charged from its hold, whatever else is held
// meanwhile. The stand-in bills the same.
func TestExecProxy(t *testing.T) {
	youtube := process(t, nil, "standin", "youtube", "--listen", "127.0.0.1:0", "--key", "ykey")
	onBoth(t, `
credentials: [{name: y1, api_key: {env: YK}, limits: [{bucket: default, units: 10, window: 24h}]}]
upstreams: {youtube: {endpoint: "`+youtube+`"}}`, func(s *shell) {
		s.env = append(s.env, "YK=ykey")
		const path = "/youtube/v3/i18nRegions?part=snippet"
		s.want(0, "", "exec", "--units", "6", "--settle", "proxy", "--label", "job=pages", "--",
			"sh", "-c", "quotactl spend --units 4; request $QUOTA_PROXY'"+path+"' 3")
		s.want(0, `{"key":"pages","units":3,"entries":3,"bucket":"default"}`, "log", "--by", "job", "-o", "json")
		s.want(0, `"held":0,`, "status", "-o", "json")
		// more than is held, and more than there is
		s.want(1, "429", "exec", "--units", "1", "--settle", "proxy", "--", "sh", "-c",
			"request $QUOTA_PROXY'"+path+"' 9")
		s.want(0, `"used":10,`, "status", "-o", "json")
		s.want(0, "", "exec", "--settle", "proxy", "--", "true") // nothing held
		// another user of the machine knows only the port
		s.want(1, "403", "exec", "--settle", "proxy", "--", "sh", "-c",
			"request ${QUOTA_PROXY%/*}'"+path+"' 1")
	})
}

// TestExecProxyOfLibraries: a program that only uses its API's library reaches the proxy.
func TestExecProxyOfLibraries(t *testing.T) {
	t.Parallel()
	github := process(t, nil, "standin", "github", "--listen", "127.0.0.1:0", "--key", "gkey")
	s := newShell(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"), `
credentials: [{name: g1, upstream: github, api_key: {env: GK}}]
upstreams: {github: {endpoint: "`+github+`"}}`)
	s.env = append(s.env, "GK=gkey")
	s.want(0, "", "exec", "--settle", "proxy", "--label", "job=repos", "--", "sh", "-c",
		"request $GITHUB_API_URL/user/repos 2")
	s.want(0, `{"key":"repos","units":2,"entries":2,"bucket":"core"}`, "log", "--bucket", "core", "--by", "job",
		"-o", "json")
}

// TestExecKilled: a killed wrapper leaves its command running. Its hold lapses into a charge unless
// a later run with the same id takes it over.
func TestExecKilled(t *testing.T) {
	onBoth(t, tenUnits, func(s *shell) {
		const wait = "echo $$ > pid.new; mv pid.new pid; while ! test -e go; do sleep 0.02; done"
		c := s.command("exec", "--units", "6", "--ttl", "10m", "--id", "tick", "--", "sh", "-c",
			wait)
		must(s, c.Start())
		child := s.exists("pid")
		must(s, c.Process.Kill())
		c.Wait()
		must(s, syscall.Kill(number(child), 0)) // still running
		s.want(75, "a run with --id tick is under way", "exec", "--units", "6", "--id", "tick",
			"--", "true")
		s.want(75, "would not fit", "exec", "--units", "5", "--", "true")
		must(s, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))

		c = s.command("exec", "--units", "4", "--ttl", "1s", "--", "sh", "-c",
			"sleep 1.2; echo > lived; sleep 300")
		must(s, c.Start())
		s.exists("lived")
		s.want(0, `"held":10,`, "status", "-o", "json") // extended while the wrapper lived
		must(s, c.Process.Kill())
		c.Wait()
		for out := ""; !strings.Contains(out, `"used":4,`); {
			_, out = s.run("status", "-o", "json")
		}
	})
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// TestExecMany: of twenty concurrent wrappers on a budget of ten, five run, and one of the others
// prints when to retry. Wrappers that wait for a common lock all run, never two at a time.
func TestExecMany(t *testing.T) {
	onBoth(t, tenUnits, func(s *shell) {
		codes, printed := map[int]int{}, 0
		for _, c := range s.all(20, "exec", "--units", "2", "--", "sh", "-c", "echo x >> ran") {
			codes[c.ProcessState.ExitCode()]++
			errs := c.Stderr.(*bytes.Buffer).String()
			if c.ProcessState.ExitCode() == 75 && errs != "" {
				if printed++; !strings.Contains(errs, "; retry in 24h") {
					s.Errorf("refused: %s", errs)
				}
			}
		}
		if printed != 1 {
			s.Errorf("%d of the refused printed when to come back", printed)
		}
		ran, _ := os.ReadFile(filepath.Join(s.dir, "ran"))
		if codes[0] != 5 || codes[75] != 15 || string(ran) != strings.Repeat("x\n", 5) {
			s.Errorf("exit codes %v, ran %q", codes, ran)
		}
		for _, c := range s.all(5, "exec", "--method", "youtube.search.list", "--lock", "one",
			"--wait", "60s", "--", "sh", "-c", "mkdir busy && sleep 0.05 && rmdir busy") {
			if !c.ProcessState.Success() {
				s.Errorf("%v: %s", c.ProcessState, c.Stderr)
			}
		}
	})
}

// all starts many at once and waits for them.
func (s *shell) all(n int, args ...string) (ended []*exec.Cmd) {
	for range n {
		ended = append(ended, s.begin(args...))
	}
	for _, c := range ended {
		c.Wait()
	}
	return ended
}

// TestExecSignals: the wrapper passes on its signals, and ends by a signal that ended the command.
func TestExecSignals(t *testing.T) {
	t.Parallel()
	// Under nohup and in the background these are ignored, and children would inherit that.
	heeded := make(chan os.Signal, 1)
	signal.Notify(heeded, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(heeded)
	s := newShell(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"), "")
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "QUIT": syscall.SIGQUIT,
		"INT": syscall.SIGINT, "WINCH": syscall.SIGWINCH} {
		c := s.started("trap 'exit 9' " + name + "; echo > ready; while :; do sleep 0.02; done")
		must(t, c.Process.Signal(sig))
		c.Wait()
		if c.ProcessState.ExitCode() != 9 {
			t.Errorf("%s: %v %s", name, c.ProcessState, c.Stderr)
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		c := s.started("echo > ready; exec sleep 300")
		must(t, c.Process.Signal(sig))
		c.Wait()
		if status := c.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != sig {
			t.Errorf("%v: %v %s", sig, c.ProcessState, c.Stderr)
		}
	}
	// a signal that comes while the configuration is read
	config := filepath.Join(s.dir, "config")
	must(t, syscall.Mkfifo(config, 0o600))
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		c := s.begin("exec", "--config", config, "--units", "1", "--", "touch", "early")
		pipe, err := os.OpenFile(config, os.O_WRONLY, 0)
		must(t, err)
		must(t, c.Process.Signal(sig))
		_, err = pipe.WriteString("credentials: [{name: default}]\n")
		must(t, errors.Join(err, pipe.Close()))
		c.Wait()
		_, err = os.Stat(filepath.Join(s.dir, "early"))
		if status := c.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != sig || err == nil {
			t.Errorf("%v while the configuration is read: %v %s", sig, c.ProcessState, c.Stderr)
		}
	}
	// killed, too
	s.want(-1, "", "exec", "--units", "1", "--", "timeout", "-s", "KILL", "0.1", "sleep", "300")
	s.want(131, "", "exec", "--units", "1", "--", "sh", "-c", "kill -QUIT $$")
	s.want(0, `"used":12,`, "status", "-o", "json") // whatever ended the command
	s.want(0, `"held":0,`, "status", "-o", "json")
}

// started starts a line of shell under exec, and waits until it has written to the file ready.
func (s *shell) started(line string, flags ...string) *exec.Cmd {
	os.Remove(filepath.Join(s.dir, "ready"))
	c := s.begin(slices.Concat([]string{"exec", "--units", "1"}, flags,
		[]string{"--", "sh", "-c", line})...)
	s.exists("ready")
	return c
}

// TestExecWaiting: callers waiting for units get them in order of arrival; an interrupted caller
// leaves the queue.
func TestExecWaiting(t *testing.T) {
	onBoth(t, tenUnits, func(s *shell) {
		first := s.started("echo > ready; while ! test -e go; do sleep 0.02; done; exit 1",
			"--units", "8", "--settle", "exit")
		var line []*exec.Cmd
		for i, units := range []string{"10", "10", "10", "1"} { // the last one would fit
			number := strconv.Itoa(i)
			line = append(line, s.begin("exec", "--units", units, "--wait", "5m", "--settle", "exit",
				"--label", "job=j"+number, "--", "sh", "-c", "echo $0 >> order; exit 1", number))
			s.until(`"note":"job j`+number, "reservations", "--bucket", "waiting/default", "-o", "json")
		}
		s.want(75, "waiting before it: 4", "exec", "--units", "1", "--wait", "100ms", "--", "true")
		s.want(0, "", "exec", "--units", "1", "--settle", "report", "--", "sh", "-c",
			"echo units=0 >&3") // the command does not wait
		must(s, line[1].Process.Signal(syscall.SIGTERM))
		must(s, line[1].Process.Signal(syscall.SIGCONT))
		line[1].Wait()
		if status := line[1].ProcessState.Sys().(syscall.WaitStatus); status.Signal() != 15 {
			s.Errorf("%v %s", line[1].ProcessState, line[1].Stderr)
		}
		must(s, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
		for _, c := range append(line, first) {
			c.Wait()
		}
		if order := s.exists("order"); order != "0\n2\n3" {
			s.Errorf("they ran in the order %q", order)
		}
		s.want(0, `"used":0,`, "status", "-o", "json")
		s.want(0, `"ok":true`, "ledger", "check", "-o", "json")
	})
}

// until runs quotactl until it prints a text.
func (s *shell) until(want string, args ...string) {
	s.Helper()
	out := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if _, out = s.run(args...); strings.Contains(out, want) {
			return
		}
	}
	s.Fatalf("%q does not print %q: %s", args, want, out)
}

// TestExecLedgerGone: a command keeps running during a ledger outage. It is settled if the ledger
// returns in time; otherwise one line reports that it is not.
func TestExecLedgerGone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--appendonly", "yes"}})
	s := newShell(t, server.URL(), "")
	const line = "echo > ready; while ! test -e go; do sleep 0.02; done; echo units=3 >&3"
	patient := s.started(line, "--units", "5", "--ttl", "10m", "--settle", "report")
	brief := s.started(line, "--units", "5", "--ttl", "1s", "--settle", "report")
	server.Kill()
	must(t, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
	brief.Wait()
	if text := brief.Stderr.(*bytes.Buffer).String(); brief.ProcessState.ExitCode() != 0 ||
		strings.Count(text, "\n") != 1 || !strings.Contains(text,
		"its usage waits in this host's journal") {
		t.Errorf("%v %s", brief.ProcessState, text)
	}
	server.Restart(t)
	patient.Wait()
	if text := patient.Stderr.(*bytes.Buffer).String(); !patient.ProcessState.Success() ||
		text != "" {
		t.Errorf("%v %s", patient.ProcessState, text)
	}
	s.want(0, "charged", "spend", "--units", "1") // and books what waits in the journal
	s.until(`"used":7,`, "status", "-o", "json")
	server.Kill()
	s.want(125, "ledger cannot be reached", "exec", "--units", "1", "--", "touch", "started")
	if _, err := os.Stat(filepath.Join(s.dir, "started")); err == nil {
		t.Error("it was started without the ledger")
	}
}
