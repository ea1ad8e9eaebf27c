package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
	"quotabudget/internal/report"
)

// TestLogAgreesWithStatus: whatever has happened, the entries since the beginning of a limit's
// window, and their sums by any label, add up to what status shows as used.
func TestLogAgreesWithStatus(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		var clock quotatest.Clock
		l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
		must(t, err)
		t.Cleanup(func() { l.Close() })
		l.Now = clock.Now
		agree(t, l, func(now time.Time) { clock.Set(t, now) })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, redistest.Options{Clock: true})
		l, err := ledger.Open(t.Context(), server.URL())
		must(t, err)
		t.Cleanup(func() { l.Close() })
		agree(t, l, func(now time.Time) { server.SetNow(t, now) })
	})
}

func agree(t *testing.T, l *ledger.Ledger, set func(time.Time)) {
	file, text := filepath.Join(t.TempDir(), "quota.yaml"), "credentials:\n"
	for n := range 1000 {
		text += fmt.Sprintf(`  - name: k%d
    limits:
      - {bucket: default, units: 100000, window: 24h}
      - {bucket: default, units: 100000, window: day, timezone: America/Los_Angeles}
      - {bucket: default, units: 100000, window: hour, timezone: Asia/Kolkata}
      - {bucket: search_list, units: 100000, window: 90m}
`, n)
	}
	must(t, os.WriteFile(file, []byte(text), 0o600))
	cfg, err := config.Load(t.Context(), file, os.Getenv)
	must(t, err)
	cases := 0
	rapid.Check(t, func(r *rapid.T) {
		cred := cfg.Credentials[cases]
		cases++
		s := &spending{T: r, now: time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC), set: set,
			gate: &gate{cred.Budget(l, cfg.Table(cred), nil), l, cfg, cred}}
		set(s.now)
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			s.step()
		}
		s.pass(time.Second)
		one := *cfg
		one.Credentials = []config.Credential{cred}
		s.compare(report.Source{Config: &one, Ledger: l})
	})
}

// spending changes a ledger at random.
type spending struct {
	*rapid.T
	*gate
	now     time.Time
	set     func(time.Time)
	cancels []func(context.Context) error
	holds   []string
}

func (s *spending) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.set(s.now)
}

func (s *spending) step() {
	buckets := []string{"default", "search_list"}
	call := quota.Call{Bucket: rapid.SampledFrom(buckets).Draw(s.T, "bucket"),
		Units: rapid.Int64Range(1, 99).Draw(s.T, "units"), Labels: quota.Labels{
			"region": rapid.SampledFrom([]string{"", "US", "DE"}).Draw(s.T, "region"),
			"team":   rapid.SampledFrom([]string{"a", "b"}).Draw(s.T, "team")}}
	var err error
	switch what := rapid.IntRange(0, 8).Draw(s.T, "what"); {
	case what == 0 && len(s.cancels) > 0:
		if err = s.cancels[0](s.Context()); errors.Is(err, quota.ErrNoEntry) { // it was taken off
			err = nil
		}
		s.cancels = s.cancels[1:]
	case what == 1:
		var d quota.Decision
		d, err = s.Reserve(s.Context(), quota.ReserveRequest{Call: call, TTL: time.Hour,
			Lapse: quota.LapseCharge})
		s.holds = append(s.holds, d.Reservation)
	case what == 2 && len(s.holds) > 0:
		_, err = s.Settle(s.Context(), s.holds[0], quota.Call{Labels: call.Labels})
		if errors.Is(err, quota.ErrNoReservation) { // it lapsed, and all of that was taken off
			err = nil
		}
		s.holds = s.holds[1:]
	case what <= 4:
		s.pass(time.Duration(rapid.Int64Range(1, int64(8*time.Hour/time.Microsecond)).
			Draw(s.T, "µs")) * time.Microsecond)
	case what == 5 || what == 6:
		err = s.correct(call, what == 5)
	default:
		var cancel func(context.Context) error
		_, cancel, err = s.Spend(s.Context(), call)
		s.cancels = append(s.cancels, cancel)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// correct adds units by hand, at some time, or takes some off what the day has so far.
func (s *spending) correct(call quota.Call, more bool) error {
	a := quota.Adjust{Credential: s.Credential, ID: quota.NewID(s.now), Bucket: call.Bucket,
		Units: call.Units, Limits: quota.LimitsOf(call.Bucket, s.Limits), Labels: call.Labels,
		Until: s.now.Add(-time.Duration(rapid.IntRange(0, 20).Draw(s.T, "hours")) * time.Hour)}
	if !more {
		has, err := s.Ledger.Between(s.Context(), s.Credential, call.Bucket, a.After, a.Until)
		if a.Units = -min(a.Units, has); err != nil || has == 0 {
			return err
		}
	}
	_, err := s.Ledger.Adjust(s.Context(), a)
	return err
}

func (s *spending) compare(src report.Source) {
	status, err := src.Status(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, b := range status.Credentials[0].Buckets {
		for i, l := range b.Limits {
			window := quota.LimitsOf(b.Bucket, s.Limits)[i]
			q := question{bucket: b.Bucket, until: "0s",
				since: window.Since(s.now, time.Time{}).Format(time.RFC3339Nano)}
			for _, by := range []string{"", "region", "team", "label:none"} {
				if got := s.sum(q, by); got != l.Used {
					s.Fatalf("%s by %q: %d, status says %d", window.Name(), by, got, l.Used)
				}
			}
		}
	}
}

// sum adds up what log prints as CSV.
func (s *spending) sum(q question, by string) (units int64) {
	var out bytes.Buffer
	a := &app{cli.Common{Stdout: &out, Output: "csv"}}
	q.by = by
	err := a.checkLog(&q, by != "")
	column := 1
	switch {
	case err != nil:
	case by == "":
		column = 3
		var entries []quota.Entry
		if entries, err = s.entries(s.Context(), q); err == nil {
			err = a.printEntries(s.prices(), entries)
		}
	default:
		err = a.printGroups(s.Context(), s.gate, q)
	}
	if err != nil {
		s.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		s.Fatal(err)
	}
	for _, row := range rows[1:] {
		n, err := strconv.ParseInt(row[column], 10, 64)
		if err != nil {
			s.Fatal(err)
		}
		units += n
	}
	return units
}
