package client

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds returns the holds waiting in the journal at path, as the next process reads it.
func holds(t *testing.T, path string) (names []string) {
	t.Helper()
	lines, err := (&Journal{Path: path}).open()
	must(t, err)
	for _, l := range lines {
		names = append(names, l.Hold)
	}
	return names
}

// TestJournal requires that unbooked settlements survive a crash, whether or not a process replays
// the lines of an earlier one.
func TestJournal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	if got := holds(t, path); got != nil {
		t.Errorf("%v wait in no file", got)
	}
	j := &Journal{Path: path}
	for _, hold := range []string{"a", "b", "c"} {
		must(t, j.keep(hold, map[string]int64{"default": 1}))
	}
	must(t, j.drop("b"))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteString(`{"hold":"torn","us`)
	must(t, err)
	must(t, file.Close())
	if got := holds(t, path); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("%v wait, want a and c", got)
	}
	next := &Journal{Path: path} // of a process that settles before it replays
	must(t, next.keep("d", map[string]int64{"default": 2}))
	must(t, next.drop("d"))
	if got := holds(t, path); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("%v wait after another process, want a and c", got)
	}
	for _, hold := range []string{"a", "c"} {
		must(t, next.drop(hold))
	}
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("an empty journal is %q, %v", text, err)
	}
	if err := (&Journal{Path: filepath.Join(path, "x")}).keep("a", nil); err == nil {
		t.Error("a journal that cannot be written is no error")
	}
}
