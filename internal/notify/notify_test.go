package notify_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestOnceAcrossHosts: hosts that check at the same time send one notification, for the largest
// share. Falling back to a smaller share sends nothing.
func TestOnceAcrossHosts(t *testing.T) {
	t.Parallel()
	for _, redis := range []bool{false, true} {
		t.Run(map[bool]string{false: "sqlite", true: "redis"}[redis], func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, redis, "  at: [50%, 80%, 100%]")
			all := func() {
				var looking sync.WaitGroup
				for range 3 {
					n := e.host()
					looking.Go(func() { n.Look(t.Context(), look, true); n.Look(t.Context(), look, true) })
				}
				looking.Wait()
			}
			e.spend(49)
			all()
			e.sent()
			e.spend(31)
			all()
			e.sent("80% of default 24h")
			e.cfg.Notify.At = []int64{50}
			all()
			e.sent("80% of default 24h")
			e.cfg.Notify.At = []int64{50, 80, 100}
			e.spend(20)
			all()
			e.sent("80% of default 24h", "100% of default 24h")
			if redis {
				e.redis.SetNow(t, time.Now().Add(25*time.Hour))
				e.spend(50)
				all()
				e.sent("80%", "100%", "50% of default 24h")
			}
		})
	}
}

// TestReceiverFails: the notification is sent again to a receiver that fails, with the same ID:
// within seconds if a retry may help, otherwise at the first look after the lease.
func TestReceiverFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers  []http.HandlerFunc
		requests int // of the first look
		log      string
	}{
		"500 twice": {[]http.HandlerFunc{answer(500), answer(503)}, 3, ""},
		"redirect": {[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}}, 1, "write the address that it redirects to"},
		"refused": {[]http.HandlerFunc{answer(401)}, 1, "check url and secret"},
		"hangs": {[]http.HandlerFunc{
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}, 1, "not sent within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, true, "  at: [80%]")
			e.answers = c.answers
			e.spend(80)
			most := look
			if name == "hangs" {
				most = time.Second
			}
			e.host().Look(t.Context(), most, true)
			if e.requests() != c.requests || !strings.Contains(e.log.String(), c.log) {
				t.Fatalf("%d requests, not %d; log:\n%s", e.requests(), c.requests, &e.log)
			}
			if c.log != "" {
				e.host().Look(t.Context(), look, true)
				e.sent() // the lease is still held
				e.redis.SetNow(t, time.Now().Add(61*time.Second))
				e.host().Look(t.Context(), look, true)
			}
			e.sent("80%")
			if len(slices.Compact(e.ids)) != 1 {
				t.Errorf("IDs %q", e.ids)
			}
		})
	}
}

// TestEventIsRefused: a target that refuses an event still gets the others. The next look does not
// send the refused event again.
func TestEventIsRefused(t *testing.T) {
	t.Parallel()
	for status, requests := range map[int]int{400: 2, 500: 4} {
		out := filepath.Join(t.TempDir(), "out")
		e := newEnv(t, true, "  at: [80%]\n  on: [suspended]\n"+
			"  command: [sh, -c, 'grep suspended >> "+out+"']")
		e.answers = []http.HandlerFunc{answer(status), answer(status), answer(status)}[:requests-1]
		e.spend(80)
		must(t, e.ledger.Suspend(t.Context(), quota.Suspension{Credential: "key1",
			Bucket: "default", Until: time.Now().Add(2 * time.Hour)}))
		n := e.host()
		n.Look(t.Context(), look, true)
		e.redis.SetNow(t, time.Now().Add(61*time.Second))
		n.Look(t.Context(), look, true)
		e.sent("suspended until")
		text, err := os.ReadFile(out)
		if err != nil || e.requests() != requests || strings.Count(string(text), "\n") != 1 {
			t.Errorf("%d requests, want %d; the command got %s", e.requests(), requests, text)
		}
	}
}

// TestMarkFails: a host that sends an event but then cannot reach the ledger to mark it does not
// send it again. A later look marks the event and those of smaller shares, even if the share is no
// longer configured.
func TestMarkFails(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false, "  at: [50%, 80%]")
	file := strings.TrimPrefix(e.cfg.Ledger, "sqlite:")
	e.answers = []http.HandlerFunc{func(http.ResponseWriter, *http.Request) {
		must(t, os.Rename(file, file+".away"))
	}}
	e.spend(80)
	n := e.host()
	for range 2 {
		n.Look(t.Context(), look, true)
	}
	must(t, os.Rename(file+".away", file))
	for _, at := range []int64{90, 80, 50} {
		e.cfg.Notify.At = []int64{at}
		n.Look(t.Context(), look, true)
		n = e.host()
	}
	n.Look(t.Context(), look, true)
	if e.requests() != 1 || strings.Count(e.log.String(), "WARN") != 2 { // one for each share
		t.Errorf("%d requests, want 1; log:\n%s", e.requests(), &e.log)
	}
}

// TestID: all attempts to send a notification have the same ID, even if a new period of a sliding
// window begins between them. The next notification has another ID.
func TestID(t *testing.T) {
	t.Parallel()
	const midnight, noon = 24 * time.Hour, 12 * time.Hour
	for name, c := range map[string]struct {
		window, zone, event string
		first               time.Duration // time from midnight to the first attempt
	}{
		"forecast, day":    {"day", "UTC", "  on: [forecast]", noon},
		"limit, 24h":       {"24h", "", "  at: [80%]", midnight - 30*time.Second},
		"limit, 24h, noon": {"24h", "", "  at: [80%]", noon},
		"limit, 1m":        {"1m", "", "  at: [80%]", midnight - 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, true, c.event+"\n"+
				"ingest: {regions: [US, GB], pages: 4, schedule: '* * * * *', stagger: 0s}")
			window, err := quota.ParseWindow(c.window, c.zone)
			must(t, err)
			e.cfg.Credentials[0].Limits[0].Window = window
			e.answers = []http.HandlerFunc{answer(401), answer(401)}
			day := time.Now().Truncate(24 * time.Hour)
			for i, after := range []time.Duration{0, 61 * time.Second, 122 * time.Second,
				25 * time.Hour} {
				e.redis.SetNow(t, day.Add(c.first+after))
				if i%3 == 0 || c.window == "1m" {
					e.spend(80)
				}
				e.host().Look(t.Context(), look, false)
			}
			e.sent("default", "default")
			if ids := e.ids; len(ids) != 4 || ids[0] != ids[1] || ids[1] != ids[2] ||
				ids[2] == ids[3] {
				t.Errorf("IDs %q", ids)
			}
		})
	}
}

// TestTargets: each target has its own claim, so a failing target does not repeat notifications to
// other targets.
func TestTargets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	e := newEnv(t, true, "  command: [sh, -c, 'cat >> "+out+"; env | grep SECRET >> "+out+"; true']\n"+
		"  at: [80%]")
	e.answers = []http.HandlerFunc{answer(404)}
	e.spend(80)
	e.host().Look(t.Context(), look, true)
	e.redis.SetNow(t, time.Now().Add(61*time.Second))
	e.host().Look(t.Context(), look, true)
	e.sent("80%")
	text, err := os.ReadFile(out)
	must(t, err)
	if strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), `"percent":80`) {
		t.Errorf("the command got %s", text)
	}
}

// TestConditions: each condition is one event.
func TestConditions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false, "  on: [forecast, suspended, unpriced, stale_prices, missed_ticks]")
	ctx, l := t.Context(), e.ledger
	now, err := l.Time(ctx)
	must(t, err)
	must(t, l.Suspend(ctx, quota.Suspension{Credential: "key1", Bucket: "default",
		Until: now.Add(2 * time.Hour), By: "alice", Reason: "key <!channel> @here"}))
	e.host().Look(ctx, look, true)
	e.host().Look(ctx, look, true)
	e.sent("suspended until")
	if text := e.texts[0]; strings.ContainsAny(text, "<>@") || !strings.Contains(text, "by alice") {
		t.Errorf("mentions somebody: %s", text)
	}
	must(t, l.Suspend(ctx, quota.Suspension{Credential: "key1", Bucket: "default", Until: now}))
	_, err = l.Charge(ctx, quota.Charge{ID: quota.NewID(now), Credential: "key1",
		Limits: e.cfg.Credentials[0].Limits, Costs: []quota.Cost{{Bucket: "default", Units: 1}},
		Labels: quota.Labels{quota.LabelUnlisted: "model-9"}})
	must(t, err)
	n := e.host()
	n.Look(ctx, look, false)
	e.host().Look(ctx, look, false)
	e.mu.Lock()
	text := strings.Join(e.texts, "\n")
	e.mu.Unlock()
	if strings.Count(text, "no row for model-9") != 1 {
		t.Errorf("sent %s", text)
	}
}

// TestSecretsAreNotShown: even if a receiver's response repeats the request, errors contain neither
// the path of the URL nor the secret.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false, "")
	e.answers = []http.HandlerFunc{
		func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no such path: "+r.URL.Path, http.StatusNotFound)
		}}
	got := e.results()
	if strings.Contains(got, "T012345") || strings.Contains(got, secret) ||
		!strings.Contains(got, "responds with 404") {
		t.Error(got)
	}
	// Nothing listens on the local port of a connection, and no other process can take it.
	conn, err := net.Dial("tcp", e.receiver.Listener.Addr().String())
	must(t, err)
	defer conn.Close()
	e.cfg.Notify.URL = "http://" + conn.LocalAddr().String() + "/services/T012345"
	if got := e.results(); strings.Contains(got, "T012345") || !strings.Contains(got, "refused") {
		t.Error(got)
	}
}

// TestMissedTicks: the missed ticks of all lanes in an hour are one notification.
func TestMissedTicks(t *testing.T) {
	t.Parallel()
	e := newEnv(t, false, "  on: [missed_ticks]")
	n := e.host()
	lanes, err := e.cfg.Lanes()
	must(t, err)
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	n.Missed("key1", lanes[0], 3, at, "no daemon ran")
	n.Missed("key1", lanes[1], 1, at, "no daemon ran")
	n.Look(context.Background(), look, true)
	n.Look(context.Background(), look, true)
	e.sent("3 ticks of " + lanes[0].Name() + ", the last at 2026-06-01 12:00:00Z: no daemon ran; 1 tick of")
}
