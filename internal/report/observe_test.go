package report

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

// TestReplayIsWhatEnforcingDoes: replaying the log of an observed limit refuses the same charges
// as a ledger that enforces the limit.
func TestReplayIsWhatEnforcingDoes(t *testing.T) {
	t.Parallel()
	var clock quotatest.Clock
	l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	l.Now = clock.Now
	same(t, l, func(now time.Time) { clock.Set(t, now) })
}

func window(text, zone string) quota.Window {
	w, err := quota.ParseWindow(text, zone)
	if err != nil {
		panic(err) // fails only on a limit listed below
	}
	return w
}

var windows = []quota.Window{
	window("1h", ""), window("day", "America/Los_Angeles"), window("24h", ""), window("1m", ""),
	window("hour", "Asia/Kolkata"), window("restoring 3/1m", ""), window("anchored 1h", ""),
	window("week", "UTC"),
}

func same(t *testing.T, l *ledger.Ledger, set func(time.Time)) {
	cases := 0
	rapid.Check(t, func(r *rapid.T) {
		cases++
		limit := quota.Limit{Bucket: "default", Observe: true,
			Window: rapid.SampledFrom(windows).Draw(r, "window"),
			Units:  rapid.Int64Range(1, 60).Draw(r, "units")}
		enforced := limit
		enforced.Observe = false
		now := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
		refused := make(map[time.Time]bool)
		charge := func(credential string, at quota.Limit, c quota.Charge) quota.Decision {
			c.Credential, c.Limits = credential, []quota.Limit{at}
			d, err := l.Charge(r.Context(), c)
			if err != nil && !d.Never {
				r.Fatal(err)
			}
			return d
		}
		watched, real := fmt.Sprintf("watched-%d", cases), fmt.Sprintf("real-%d", cases)
		for range rapid.IntRange(1, 40).Draw(r, "charges") {
			longest := rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 9 * time.Hour}).
				Draw(r, "about")
			now = now.Add(time.Duration(rapid.Int64Range(1, int64(longest/time.Millisecond)).
				Draw(r, "ms")) * time.Millisecond)
			set(now)
			c := quota.Charge{ID: quota.NewID(time.Now()), Costs: []quota.Cost{{Bucket: "default",
				Units: rapid.Int64Range(1, 30).Draw(r, "cost")}}}
			d := charge(watched, limit, c)
			if !d.Allowed {
				r.Fatalf("an observed limit denies: %+v", d)
			}
			if !charge(real, enforced, c).Allowed {
				refused[d.At] = true
			}
		}
		replay := NewReplay(limit, time.Time{}, time.Time{}, time.Time{})
		q := quota.Query{Credential: watched, Bucket: "default"}
		for e, err := range quota.All(r.Context(), l, q) {
			if err != nil {
				r.Fatal(err)
			}
			before := replay.Finding().Refused.Charges
			if err := replay.Add(e); err != nil {
				r.Fatal(err)
			}
			if refuses := replay.Finding().Refused.Charges > before; refuses != refused[e.At] {
				r.Fatalf("%d units at %s under %s: refused in the replay %t, by the limit %t",
					e.Units, e.At, limit.Name(), refuses, refused[e.At])
			}
		}
	})
}

func add(t *testing.T, r *Replay, e quota.Entry) {
	t.Helper()
	if err := r.Add(e); err != nil {
		t.Fatal(err)
	}
}

func at(hour, minute int) time.Time { return time.Date(2026, 6, 1, hour, minute, 0, 0, time.UTC) }

// TestFinding: the charges that would have been refused, and when. Units spent elsewhere count
// and cannot be refused.
func TestFinding(t *testing.T) {
	limit := quota.Limit{Bucket: "default", Units: 10, Window: quota.Sliding(time.Hour)}
	r := NewReplay(limit, time.Time{}, at(7, 0), at(9, 0))
	add := func(at time.Time, units int64, labels quota.Labels) {
		add(t, r, quota.Entry{At: at, Units: units, Labels: labels})
	}
	de, us := quota.Labels{"region": "DE", "run": "1"}, quota.Labels{"region": "US"}
	add(at(6, 30), 8, us)
	add(at(7, 10), 3, quota.Labels{"region": "DE", "run": "2", "denied": "default 1h"}) // 8 + 3
	add(at(7, 15), 2, us)
	// 2 + 8: the eight have left, the three were never admitted
	add(at(7, 40), 8, us)
	add(at(7, 50), 5, quota.Labels{"source": "upstream"}) // 15
	add(at(8, 20), 1, de)                                 // 13 + 1
	add(at(8, 30), 4, de)
	add(at(8, 45), 6, us) // 5 + 6
	add(at(9, 0), 2, us)
	add(at(9, 1), 9, us) // too late to count
	f := r.Finding()
	if f.Charged != (Refusals{Units: 31, Charges: 8}) ||
		f.Refused != (Refusals{Units: 14, Charges: 4}) || !f.Exact || !f.From.Equal(at(6, 30)) {
		t.Errorf("%+v", f)
	}
	if len(f.By) != 2 || f.By[0].Units != 8 || f.By[0].Charges != 3 ||
		f.By[0].Labels.Encode() != "region=DE" || f.By[1].Units != 6 {
		t.Errorf("by labels: %+v", f.By)
	}
	if len(f.Hours) != 2 || !time.Time(f.Hours[0].At).Equal(at(7, 0)) || f.Hours[1].Units != 11 {
		t.Errorf("by hour: %+v", f.Hours)
	}
	if f.Common("region") != "" || f.Share() != 14.0/31 {
		t.Errorf("%q, %f", f.Common("region"), f.Share())
	}
	if _, all := f.Hour(); all {
		t.Error("Hour found one hour, want two")
	}
}

// TestSettled: if calls are booked after they have ended, the result is not exact.
func TestSettled(t *testing.T) {
	r := NewReplay(quota.Limit{Units: 1, Window: window("1h", "")}, time.Time{}, at(0, 0),
		time.Time{})
	r.Settled()
	add(t, r, quota.Entry{At: at(1, 0), Units: 2})
	if f := r.Finding(); f.Exact || f.Note == "" || f.Refused.Units != 2 {
		t.Errorf("%+v", f)
	}
}

// TestUnknown: the result is not exact if the log lacks information.
func TestUnknown(t *testing.T) {
	for text, exact := range map[string]bool{"concurrent": false, "anchored 1h": false, "1h": true,
		"day": true, "restoring 1/1s": true} {
		r := NewReplay(quota.Limit{Window: window(text, "")}, time.Time{}, at(0, 0), time.Time{})
		add(t, r, quota.Entry{At: at(1, 0), Units: 1})
		f := r.Finding()
		if f.Exact != exact || (f.Note == "") != exact ||
			(f.Refused.Units > 0) != (text != "concurrent") {
			t.Errorf("%s: %+v", text, f)
		}
	}
}
