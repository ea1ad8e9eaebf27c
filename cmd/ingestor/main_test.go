package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/standin"
)

// noRaceWait keeps the race detector from holding up the end of every process for a second.
const noRaceWait = "GORACE=atexit_sleep_ms=0"

// testEnv returns the environment of a program: PATH, home if that is not "", and more.
func testEnv(home string, more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), noRaceWait, home}, more...)
}

func TestMain(m *testing.M) {
	testscript.Main(programs{m}, map[string]func(){"ingestor": main})
}

// programs builds quotactl next to ingestor, on the PATH of the tests.
type programs struct{ *testing.M }

// Run builds quotactl, then runs the tests.
func (p programs) Run() int {
	dir, err := os.MkdirTemp("", "ingestor-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("go", "build", "-o", dir,
		"../quotactl").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "quotactl: %v\n%s", err, out)
		return 1
	}
	os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return p.M.Run()
}

func TestScripts(t *testing.T) {
	dirs := []string{"testdata"}
	data := standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"))
	if data == "" {
		t.Log("no shared data: the real charts are not swept")
	} else {
		dirs = append(dirs, filepath.Join("testdata", "shared"))
	}
	for _, dir := range dirs {
		testscript.Run(t, testscript.Params{
			Dir:                dir,
			RequireUniqueNames: true,
			Setup: func(e *testscript.Env) error {
				e.Setenv("QUOTA_STATE_DIR", filepath.Join(e.WorkDir, "state"))
				e.Setenv("YOUTUBE_API_KEY", "any")
				e.Vars = append(e.Vars, noRaceWait)
				e.Setenv("CHARTS", filepath.Join(data, "trending"))
				e.Values[daemonKey{}] = new(*process)
				return nil
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){
				"standin": standinCmd, "set": setCmd, "counts": countsCmd, "agree": agreeCmd,
				"exits": exitsCmd, "field": fieldCmd, "shape": shapeCmd, "gzip": gzipCmd,
				"lint": lintCmd, "daemon": daemonCmd, "fetch": fetchCmd, "await": awaitCmd,
				"signal": signalCmd,
				"redis": func(ts *testscript.TestScript, _ bool, args []string) {
					ts.Setenv("QUOTA_LEDGER", redisAhead(ts, t, args).URL())
				},
			},
		})
	}
}

// lintCmd requires that promtool finds no fault in the metrics of a file or of stdout: lint FILE.
func lintCmd(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(ts.ReadFile(args[0]))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		ts.Fatalf("promtool check metrics: %v\n%s", err, out)
	}
}

// redisAhead starts a server: redis, or redis DURATION for one whose stopped clock is ahead of this
// machine's by that much.
func redisAhead(ts *testscript.TestScript, t *testing.T, args []string) *redistest.Server {
	if len(args) == 0 {
		return redistest.Start(t, redistest.Options{})
	}
	ahead, err := time.ParseDuration(args[0])
	ts.Check(err)
	server := redistest.Start(t, redistest.Options{Clock: true})
	server.SetNow(t, time.Now().Add(ahead))
	return server
}

// exitsCmd requires an exit code of a program: exits CODE PROGRAM [ARG…].
func exitsCmd(ts *testscript.TestScript, _ bool, args []string) {
	var code int
	if _, err := fmt.Sscan(args[0], &code); err != nil {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG…]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = ended.ExitCode()
	}
	if got != code {
		ts.Fatalf("exit code %d, want %d", got, code)
	}
}

// must ends a test after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
