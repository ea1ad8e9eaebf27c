package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	passes  = "ok  \texample/b\t0.1s\n"
	crashes = "ThreadSanitizer: CHECK failed: tsan_rtl.cpp:1 \"((thr))\" (0x0, 0x0) (tid=7)\n" +
		"    #0 __tsan::CheckUnwind() tsan_rtl.cpp:1\nFAIL\texample/a\t0.1s\n"
	fails      = "--- FAIL: TestX (0.00s)\n    x_test.go:1: no\nFAIL\nFAIL\texample/b\t0.1s\n"
	races      = "WARNING: DATA RACE\nexit status 66\nFAIL\texample/b\t0.1s\n"
	panics     = "panic: test timed out after 25m0s\nFAIL\texample/b\t0.1s\n"
	unbuilt    = "# example/b\nb.go:1:1: syntax error\nFAIL\texample/b [build failed]\n"
	raceBefore = "WARNING: DATA RACE\n" + crashes
)

// TestRace_RunsAgainOnlyAfterACrashOfTheDetector runs scripts/test-race with a go command
// that prints its input, and fails if that contains FAIL.
func TestRace_RunsAgainOnlyAfterACrashOfTheDetector(t *testing.T) {
	t.Parallel()
	fake, err := filepath.Abs("testdata/fakego")
	must(t, err)
	for name, c := range map[string]struct {
		runs   []string // what go prints, first for all packages, then for the one that crashed
		passes bool
	}{
		"green":                    {[]string{passes}, true},
		"a crash, then green":      {[]string{passes + crashes + passes, passes}, true},
		"two crashes, then green":  {[]string{crashes, crashes, passes}, true},
		"three crashes":            {[]string{crashes, crashes, crashes}, false},
		"a crash, then a failure":  {[]string{crashes, fails}, false},
		"a failure":                {[]string{fails}, false},
		"a failure beside a crash": {[]string{crashes + fails}, false},
		"a race beside a crash":    {[]string{crashes + races}, false},
		"a race, then a crash":     {[]string{raceBefore}, false},
		"a panic beside a crash":   {[]string{panics + crashes}, false},
		"a build that fails":       {[]string{crashes + unbuilt}, false},
		"a go that does not start": {[]string{"FAIL: no go.mod\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i, run := range c.runs {
				write(t, filepath.Join(dir, "run"+strings.Repeat("+", i+1)), run)
			}
			cmd := exec.CommandContext(t.Context(), "../scripts/test-race")
			cmd.Env = append(os.Environ(), "GO=", "RUNS="+dir, "PATH="+fake+":"+os.Getenv("PATH"))
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if (err == nil) != c.passes {
				t.Errorf("%v\n%s%s", err, &stdout, &stderr)
			}
			const test = "test -race -vet off -timeout 25m " +
				"-gcflags modernc.org/sqlite/lib=-race=false -d=checkptr=0 " +
				"-gcflags modernc.org/libc=-race=false -d=checkptr=0 "
			want := test + "./...\n" + strings.Repeat(test+"example/a\n", len(c.runs)-1)
			if got := read(t, filepath.Join(dir, "asked")); got != want {
				t.Errorf("go was run with\n%swant\n%s", got, want)
			}
			if got, want := stdout.String(), strings.Join(c.runs, ""); got != want {
				t.Errorf("printed\n%swant\n%s", got, want)
			}
			said := strings.Count(stderr.String(), "testing again: example/a\n")
			if said != len(c.runs)-1 {
				t.Errorf("said %d times that it runs again:\n%s", said, &stderr)
			}
		})
	}
}
