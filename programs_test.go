package quotabudget_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// update makes the tests of generated files write them: go test . -run TestPicture -update
var update = flag.Bool("update", false, "write the generated documents instead of comparing them")

// programs is the folder of both programs, which the first test that needs them builds.
var programs struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if programs.dir != "" {
		os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}

func build() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "documents-test-"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir, "./cmd/...").CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
}

// program is the path of a built program.
func program(t *testing.T, name string) string {
	t.Helper()
	tree(t)
	programs.once.Do(func() { programs.dir, programs.err = build() })
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return filepath.Join(programs.dir, name)
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
