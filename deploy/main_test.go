// Package deploy_test tests the files of this folder with the programs, and with the tools that
// read them.
package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	os.Exit(clitest.Main{M: m, Packages: []string{"quotabudget/cmd/..."}}.Run())
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// tool runs a program, which must succeed, and returns its output.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// program returns the path of a built program.
func program(t *testing.T, name string) string {
	t.Helper()
	touch(t)
	return clitest.Program(t, name)
}

// touch reads the state of every source file. go test caches a result until a file that the test
// itself read changes; it does not notice the files that the test's commands read.
func touch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err == nil && (strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "go.")) {
			_, err = os.Stat(path)
		}
		return err
	})
	must(t, err)
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
