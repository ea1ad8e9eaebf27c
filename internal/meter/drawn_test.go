package meter_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/meter"
	"quotabudget/internal/meter/metertest"
	"quotabudget/internal/quota"
)

// TestDrawsMost: a call of an unknown price that names a reservation draws on it and returns the
// units that it did not use. It is denied if the reservation has less than the most that it can
// take. A call that never left returns all units.
func TestDrawsMost(t *testing.T) {
	t.Parallel()
	redis, _ := metertest.Redis(t)
	for name, l := range map[string]*ledger.Ledger{"sqlite": metertest.File(t), "redis": redis} {
		t.Run(name, func(t *testing.T) {
			testDrawsMost(t, onLedger(t, "openai", l, limitOn("tokens", 4000)))
		})
	}
}

// drawing reserves units of a bucket, and returns a context whose calls draw on the reservation.
func (m *metered) drawing(t testing.TB, bucket string, units int64) (context.Context, string) {
	t.Helper()
	d, err := m.Budget.Reserve(t.Context(), quota.ReserveRequest{TTL: time.Hour,
		Call: quota.Call{Bucket: bucket, Units: units}})
	must(t, err)
	return meter.WithCall(t.Context(), quota.Call{Reservation: d.Reservation}), d.Reservation
}

func testDrawsMost(t *testing.T, m *metered) {
	const bucket = "tokens/" + gpt
	ctx, reservation := m.drawing(t, bucket, 4000)
	if _, _, err := m.send(m.chat(t.Context(), 5, true)); !errors.Is(err, quota.ErrExhausted) {
		t.Fatalf("all is set aside, but a call that does not draw: %v", err)
	}
	for i := range 3 {
		m.expectStatus(t, 200, m.chat(ctx, 20+i, i%2 == 0))
	}
	took := m.booked(t, "tokens")
	if billed := m.standin.Counts().Units[bucket]; took != billed || took == 0 {
		t.Errorf("%d are booked, %d were billed", took, billed)
	}
	m.expectUnits(t, "tokens", 4000-took, took)
	base := m.Endpoint.Host
	m.Endpoint.Host = "127.0.0.1:1" // no process listens on this port
	r := m.chat(ctx, 5, false)
	r.URL.Host = m.Endpoint.Host
	if _, _, err := m.send(r); err == nil {
		t.Error("got a response from a closed port")
	}
	m.settled(t)
	m.expectUnits(t, "tokens", 4000-took, took)
	m.Endpoint.Host = base
	// What is left is enough for one more call, but not for its truth beside what it draws.
	r = m.chat(ctx, 20, false)
	body, err := io.ReadAll(r.Body)
	must(t, err)
	quote, err := m.Table.Quote("openai.chat.completions.create", r, body, nil)
	must(t, err)
	most := int64(0)
	for _, c := range quote.Costs {
		if c.Bucket == bucket {
			most = max(c.Units, c.Most)
		}
	}
	_, err = m.Budget.Draw(t.Context(), reservation, 4000-took-most-5, nil)
	must(t, err)
	for i := range 2 { // the second one may take more than is left
		_, _, err = m.send(m.chat(ctx, 20, false))
		m.settled(t)
		if i == 0 {
			must(t, err)
		}
	}
	if !errors.Is(err, quota.ErrReservationShort) {
		t.Errorf("more was drawn than is left: %v", err)
	}
	all := m.booked(t, "tokens")
	if own := all - (4000 - took - most - 5); own != m.standin.Counts().Units[bucket] ||
		all+m.held(t, "tokens") != 4000 || m.standin.Counts().Requests != 4 {
		t.Errorf("%d are booked, %d of calls, %d are left; the stand-in has %+v", all, own,
			m.held(t, "tokens"), m.standin.Counts())
	}
}

// TestDrawsBesideConcurrent: under a list with a limit on concurrent calls, a drawn call draws its
// points, and counts as under way until its response ends.
func TestDrawsBesideConcurrent(t *testing.T) {
	t.Parallel()
	m := openMetered(t, "github", limitOn("core", 100), quota.Limit{Bucket: "concurrent", Units: 1,
		Window: quota.Window{Concurrent: true}})
	ctx, _ := m.drawing(t, "core", 100)
	get := func() *http.Request { return m.request(ctx, "GET", "/repos/o/r", nil) }
	send := func() error {
		_, _, err := m.send(get())
		m.settled(t)
		return err
	}
	for range 3 {
		m.expectStatus(t, 200, get())
	}
	if held := m.held(t, "concurrent"); held != 0 || m.booked(t, "core") != 3 {
		t.Errorf("%d are under way, %d booked", held, m.booked(t, "core"))
	}
	m.faults(t, "drop")
	if err := send(); err == nil || m.held(t, "concurrent") != 0 || m.booked(t, "core") != 4 {
		t.Errorf("without a response: %v, %d are under way, %d booked", err,
			m.held(t, "concurrent"), m.booked(t, "core"))
	}
	m.faults(t)
	m.drawing(t, "concurrent", 1)
	if err := send(); !errors.Is(err, quota.ErrExhausted) || m.booked(t, "core") != 4 {
		t.Errorf("beside one that is under way: %v", err)
	}
}
