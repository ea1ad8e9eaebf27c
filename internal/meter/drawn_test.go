package meter_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
)

// TestDrawsMost: a call of an unknown price that names a reservation draws on it and returns the
// units that it did not use. It is denied if the reservation has less than the most that it can
// take. A call that never left returns all units.
func TestDrawsMost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	redis, err := ledger.Open(t.Context(), server.URL())
	must(t, err)
	t.Cleanup(func() { redis.Close() })
	for name, open := range map[string]func(*testing.T) *metered{
		"sqlite": func(t *testing.T) *metered {
			return openMetered(t, "openai", limitOn("tokens", 4000))
		},
		"redis": func(t *testing.T) *metered {
			return onLedger(t, "openai", redis, limitOn("tokens", 4000))
		},
	} {
		t.Run(name, func(t *testing.T) { testDrawsMost(t, open(t)) })
	}
}

func testDrawsMost(t *testing.T, m *metered) {
	const bucket = "tokens/" + gpt
	reserved, err := m.Budget.Reserve(t.Context(), quota.ReserveRequest{TTL: time.Hour,
		Call: quota.Call{Bucket: bucket, Units: 4000}})
	must(t, err)
	ctx := meter.WithCall(t.Context(), quota.Call{Reservation: reserved.Reservation})
	if _, _, err := m.send(m.chat(t.Context(), 5, true)); !errors.Is(err, quota.ErrExhausted) {
		t.Fatalf("all is set aside, but a call that does not draw: %v", err)
	}
	for i := range 3 {
		if status, body, err := m.send(m.chat(ctx, 20+i, i%2 == 0)); err != nil || status != 200 {
			t.Fatal(status, body, err)
		}
	}
	m.settled(t)
	took := m.booked(t, "tokens")
	if billed := m.standin.Counts().Units[bucket]; took != billed || took == 0 {
		t.Errorf("%d are booked, %d were billed", took, billed)
	}
	if held := m.held(t, "tokens"); held != 4000-took {
		t.Errorf("%d are left of 4000, %d were taken", held, took)
	}
	base := m.Host
	m.Host = "127.0.0.1:1" // a closed port
	r := m.chat(ctx, 5, false)
	r.URL.Host = m.Host
	if _, _, err := m.send(r); err == nil {
		t.Error("got a response from a closed port")
	}
	m.settled(t)
	if held := m.held(t, "tokens"); held != 4000-took || m.booked(t, "tokens") != took {
		t.Errorf("after a call that never left, %d are set aside", held)
	}
	m.Host = base
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
	_, err = m.Budget.Draw(t.Context(), reserved.Reservation, 4000-took-most-5, nil)
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
	reserved, err := m.Budget.Reserve(t.Context(), quota.ReserveRequest{TTL: time.Hour,
		Call: quota.Call{Bucket: "core", Units: 100}})
	must(t, err)
	ctx := meter.WithCall(t.Context(), quota.Call{Reservation: reserved.Reservation})
	send := func() (int, error) {
		status, _, err := m.send(m.request(ctx, "GET", "/repos/o/r", nil))
		m.settled(t)
		return status, err
	}
	for range 3 {
		if status, err := send(); err != nil || status != 200 {
			t.Fatal(status, err)
		}
	}
	if held := m.held(t, "concurrent"); held != 0 || m.booked(t, "core") != 3 {
		t.Errorf("%d are under way, %d booked", held, m.booked(t, "core"))
	}
	m.faults(t, "drop")
	if _, err := send(); err == nil || m.held(t, "concurrent") != 0 || m.booked(t, "core") != 4 {
		t.Errorf("without a response: %v, %d are under way, %d booked", err,
			m.held(t, "concurrent"), m.booked(t, "core"))
	}
	m.faults(t)
	_, err = m.Budget.Reserve(t.Context(), quota.ReserveRequest{TTL: time.Hour,
		Call: quota.Call{Bucket: "concurrent", Units: 1}})
	must(t, err)
	if _, err := send(); !errors.Is(err, quota.ErrExhausted) || m.booked(t, "core") != 4 {
		t.Errorf("beside one that is under way: %v", err)
	}
}
