package sqliteledger

import (
	"errors"
	"testing"

	"quotabudget/internal/quota"
)

// A reservation of which more is drawn than it had may hold any number of units: it denies.
func TestMoreDrawnThanSetAside(t *testing.T) {
	l := open(t, file(t))
	mustReserve(t, l, "r", 60)
	exec(t, l, "UPDATE reservations SET drawn = 61")
	d, err := l.Charge(t.Context(), aCharge(41, day(100)))
	if d.Allowed || !errors.Is(err, quota.ErrLedgerUnusable) {
		t.Errorf("%+v, %v", d, err)
	}
}
