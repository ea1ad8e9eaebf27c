package cli

import (
	"errors"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestAwaitedLedger: a ledger that is unreachable when a program starts is used once it can be
// reached.
func TestAwaitedLedger(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	s.Kill()
	l, err := OpenLedger(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Time(t.Context()); !errors.Is(err, quota.ErrUnreachable) {
		t.Errorf("a dead server: %v", err)
	}
	if _, err := OpenLedger(t.Context(), "nope:"); !errors.Is(err, quota.ErrMalformed) {
		t.Error(err)
	}
	s.Restart(t)
	l.Store.(*awaited).tried = time.Time{} // a second has passed
	if _, err := l.Time(t.Context()); err != nil {
		t.Errorf("the server is back: %v", err)
	}
}
