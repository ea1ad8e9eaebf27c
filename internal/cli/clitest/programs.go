package clitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Build builds packages of this module into a new folder, and puts it first on PATH. The programs
// are built without the race detector, which makes the start of a process five times as slow.
func Build(packages ...string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "quota-programs-"); err != nil {
		return "", err
	}
	args := append([]string{"build", "-o", dir}, packages...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return dir, fmt.Errorf("go build: %w\n%s", err, out)
	}
	os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return dir, nil
}

// Program returns the path of a program on PATH.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Main is a testing.M whose tests find built programs on PATH.
type Main struct {
	*testing.M
	Packages []string
}

// Run builds the programs, runs the tests, and returns the exit code.
func (m Main) Run() int {
	dir, err := Build(m.Packages...)
	defer os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.M.Run()
}
