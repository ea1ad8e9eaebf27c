package quotabudget_test

import (
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"quotabudget/internal/cli/clitest"
)

// update makes the tests of generated files write them: go test . -run TestPicture -update
var update = flag.Bool("update", false, "write the generated documents instead of comparing them")

// programs is the folder of both programs; "" until build has run.
var programs string

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(programs)
	os.Exit(code)
}

// build builds both programs when a test first needs one.
var build = sync.OnceValue(func() (err error) {
	programs, err = clitest.Build("quotabudget/cmd/...")
	return err
})

// program is the path of a built program.
func program(t *testing.T, name string) string {
	t.Helper()
	tree(t)
	must(t, build())
	return filepath.Join(programs, name)
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
