package ingest_test

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"quotabudget/internal/ingest"
)

// fileSize limits the size of the files this process writes, as a full disk would. The limit
// holds until the caller calls enough or the test ends, and also affects parallel tests.
func fileSize(t *testing.T, most uint64) (enough func()) {
	t.Helper()
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	set := func(cur uint64) {
		limit := syscall.Rlimit{Cur: cur, Max: before.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Error(err)
		}
	}
	set(most)
	enough = func() { set(before.Cur) }
	t.Cleanup(enough)
	return enough
}

// TestFullDisk: a sweep buys no page for a catalogue that cannot store it. A disk that fills up
// while a chart is being read costs the page in flight and no other.
func TestFullDisk(t *testing.T) {
	s := plenty(t)
	const little = 300 << 10 // the ledger's files are smaller
	enough := fileSize(t, little)
	_, err := s.execute(t.Context(), t, s.sweep(t, "US,GB", 2),
		"failed US:failed:0/0:0 GB:skipped:0/0:0", "")
	if !errors.Is(err, ingest.ErrCatalogue) || !strings.HasPrefix(err.Error(), "catalogue: ") {
		t.Errorf("got %v", err)
	}
	enough()

	s.onRequest(func(r *http.Request) {
		if r.URL.Query().Has("pageToken") {
			fileSize(t, little)
		}
	})
	sweep := s.sweep(t, "US,GB", 4)
	sweep.OnlyThisRun = true // one page after another, as a daemon sweeps
	_, err = s.execute(t.Context(), t, sweep, "failed US:failed:1/50:2 GB:skipped:0/0:0", "US1 US2")
	if !errors.Is(err, ingest.ErrCatalogue) {
		t.Errorf("got %v", err)
	}
	s.balanced(t)
}

// TestTooLargePage: an oversized page is charged but neither stored nor requested again, and the
// sweep goes on with the other regions.
func TestTooLargePage(t *testing.T) {
	s := plenty(t)
	answers := 0
	s.alter = func(body string) string {
		if answers++; answers == 1 {
			return strings.Replace(body, `"items":[`, `"items":[{},`, 1)
		}
		return body
	}
	sum := s.run(t, "US,GB", 1, "partial US:failed:0/0:1 GB:1/50:1", "US1 GB1")
	err := sum.Regions[0].Err()
	if err == nil || !strings.Contains(err.Error(), "items is a list of 51, 50 at most") {
		t.Errorf("got %.300v", err)
	}
	if ids := s.current(t, "US"); ids != nil {
		t.Errorf("%d videos were stored", len(ids))
	}
	s.balanced(t)
}
