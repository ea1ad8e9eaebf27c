package deploy_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/standin"
)

// services lists the units that run a program.
var services = []string{"ingestor.service", "ingestor-once.service"}

// TestUnits requires that systemd accepts every line of the units, and rates their exposure as low.
func TestUnits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []string
	for _, unit := range append(services, "ingestor-once.timer") {
		file := filepath.Join(dir, unit)
		// verify looks for the programs
		write(t, file, strings.ReplaceAll(read(t, unit), "/usr/local/bin",
			filepath.Dir(program(t, "quotactl"))))
		files = append(files, file)
	}
	args := append([]string{"verify", "--man=no"}, files...)
	if out := tool(t, "systemd-analyze", args...); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	for _, file := range files[:len(services)] {
		tool(t, "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=25",
			file)
	}
}

// TestUnitsAgree requires that both units are hardened in the same way, and name the same files as
// the crontab.
func TestUnitsAgree(t *testing.T) {
	t.Parallel()
	var hardening []string
	for _, unit := range services {
		text := read(t, unit)
		_, hardened, _ := strings.Cut(text, "\nStateDirectory=")
		hardened, _, _ = strings.Cut(hardened, "\n[Install]")
		hardening = append(hardening, strings.TrimSpace(hardened))
		for _, want := range []string{" --config /etc/quota/quota.yaml ", "\nUser=quota\n",
			"=/var/lib/quota\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is without %q", unit, want)
			}
		}
	}
	if hardening[0] != hardening[1] {
		t.Error("the units differ from StateDirectory= on")
	}
}

// TestUnderTheFilter requires that the programs work while every system call that the units forbid
// returns EPERM, and that they map no memory as both writable and executable. strace stands in for
// the kernel's filter.
func TestUnderTheFilter(t *testing.T) {
	t.Parallel()
	upstream, dir := serve(t, &standin.YouTube{}), t.TempDir()
	write(t, filepath.Join(dir, "quota.yaml"), "ingest: {regions: [US], pages: 1, "+
		"schedule: \"@every 1s\", listen: \"127.0.0.1:0\"}\n")
	file := filepath.Join(dir, "ingestor.prom")
	once := filtered(t, dir, upstream, "once", "--metrics-file", file)
	run := filtered(t, dir, upstream, "run")
	swept := regexp.MustCompile(`ingest_sweeps_total\{outcome="complete"\} [1-9]`)
	await(t, &run.log, func() bool {
		at := served.FindStringSubmatch(run.log.String())
		return at != nil && swept.MatchString(get("http://"+at[1]+"/metrics"))
	})
	// signal the program itself, not strace
	pid, err := strconv.Atoi(strings.TrimSpace(read(t, run.pid)))
	must(t, err)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && err != syscall.ESRCH {
		t.Error(err)
	}
	for _, p := range []*traced{once, run} {
		if err := p.cmd.Wait(); err != nil { // strace exits like the program it traces
			t.Errorf("%v: %v\n%s", p.cmd.Args, err, p.log.String())
		}
		trace := read(t, p.trace)
		if !strings.Contains(trace, "mmap(") || !strings.Contains(trace, "(INJECTED)") {
			t.Errorf("nothing was traced, or nothing forbidden:\n%.2000s", trace)
		}
		if mapping := regexp.MustCompile(`.*PROT_WRITE\|PROT_EXEC.*`).FindString(trace); mapping != "" {
			t.Errorf("memory that can be written and executed: %s", mapping)
		}
	}
}

// traced runs a program under strace.
type traced struct {
	cmd   *exec.Cmd
	log   metertest.Log
	trace string // file
	pid   string // file, with the number of the program's process
}

// filtered starts the ingestor without the system calls that the units forbid.
func filtered(t *testing.T, dir, upstream string, args ...string) *traced {
	t.Helper()
	denied := "?" + strings.Join(forbidden(t), ",?")
	files := t.TempDir()
	p := &traced{trace: filepath.Join(files, "trace"), pid: filepath.Join(files, "pid")}
	strace := []string{"-f", "--seccomp-bpf", "-q", "-o", p.trace,
		"-e", "trace=mmap,mprotect," + denied, "-e", "inject=" + denied + ":error=EPERM",
		"sh", "-c", `echo $$ > "$0"; exec "$@"`, p.pid, program(t, "ingestor")}
	p.cmd = exec.CommandContext(t.Context(), "strace", append(strace, args...)...)
	p.cmd.Dir, p.cmd.Env = dir, environment(dir, upstream)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // strace and the program it traces
	must(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil { // Wait was not called: the test has failed
			syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			p.cmd.Wait()
		}
	})
	return p
}

// forbidden returns the system calls that both units forbid, as systemd on this machine expands
// their filters.
func forbidden(t *testing.T) (denied []string) {
	t.Helper()
	sets := syscallSets(t)
	allowed := make(map[string]bool)
	line := regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.*)$`)
	for _, filter := range line.FindAllStringSubmatch(read(t, services[0]), -1) {
		for name := range strings.FieldsSeq(filter[2]) {
			for _, call := range sets.expand(name) {
				allowed[call] = filter[1] == ""
			}
		}
	}
	denied = slices.DeleteFunc(sets.expand("@known"), func(c string) bool { return allowed[c] })
	if len(denied) < 100 || len(denied) > 300 {
		t.Fatalf("%d system calls are forbidden", len(denied))
	}
	return slices.Compact(slices.Sorted(slices.Values(denied)))
}

// callSets maps systemd's groups of system calls to their members.
type callSets map[string][]string

func syscallSets(t *testing.T) callSets {
	t.Helper()
	sets, name := make(callSets), ""
	for line := range strings.Lines(tool(t, "systemd-analyze", "syscall-filter", "--no-pager")) {
		word := strings.TrimSpace(line)
		switch {
		case word == "" || strings.HasPrefix(word, "#"):
		case strings.HasPrefix(line, "@"):
			name, _, _ = strings.Cut(word, " ")
		default:
			sets[name] = append(sets[name], word)
		}
	}
	return sets
}

// expand returns the calls of a group, or the call itself.
func (s callSets) expand(name string) (calls []string) {
	if !strings.HasPrefix(name, "@") {
		return []string{name}
	}
	for _, member := range s[name] {
		calls = append(calls, s.expand(member)...)
	}
	return calls
}
