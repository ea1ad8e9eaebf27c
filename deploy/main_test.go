// Package deploy_test holds what is in this folder against the programs, and against the tools that
// read it.
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

// tool runs a program that must succeed, and returns what it prints.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// program is the path of a built program.
func program(t *testing.T, name string) string {
	t.Helper()
	touch(t)
	return clitest.Program(t, name)
}

// touch looks at every source. go test keeps a result until a file changes that the test itself
// looked at, and does not know what the commands have read that it starts.
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

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
