package sqlitestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

func restoring(t testing.TB, units int64, windows ...string) (limits []quota.Limit) {
	t.Helper()
	for _, text := range windows {
		w, err := quota.ParseWindow(text, "")
		if err != nil {
			t.Fatal(err)
		}
		limits = append(limits, quota.Limit{Bucket: "default", Units: units, Window: w})
	}
	return limits
}

// Over hundreds of charges, of which some are taken back, early ones and late ones, the levels are
// those that all entries come to.
func TestLevelsOfLongLogs(t *testing.T) {
	l := openEnv(t, file(t))
	limits := restoring(t, 6000, "restoring 7/1s", "restoring 1/3s")
	for seed := range uint64(8) {
		h := &history{t: t, rand: rand.New(rand.NewPCG(seed, 0)), l: l, limits: limits,
			credential: fmt.Sprintf("key%d", seed),
			now:        time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
		l.Now = func() time.Time { return h.now }
		h.model = &quotatest.Model{Now: l.Now}
		for range 2 {
			for range 64 + h.rand.IntN(128) {
				h.charge()
			}
			for range h.rand.IntN(3) {
				h.cancel(h.rand.IntN(len(h.made) + 1))
			}
			h.compare()
		}
	}
}

// history is charges on a ledger and on the model.
type history struct {
	t          *testing.T
	rand       *rand.Rand
	l          *env
	model      *quotatest.Model
	credential string
	limits     []quota.Limit
	now        time.Time
	made       []quota.Charge
	answers    []quota.Decision
}

func (h *history) charge() {
	steps := []time.Duration{0, time.Millisecond, time.Second, 20 * time.Second}
	h.now = h.now.Add(steps[h.rand.IntN(len(steps))])
	c := quota.Charge{Credential: h.credential, ID: fmt.Sprintf("e%d", len(h.made)),
		Limits: h.limits, Costs: []quota.Cost{{Bucket: "default",
			Units: 1 + h.rand.Int64N(60)}}}
	want, _ := h.model.Charge(context.Background(), c)
	got, err := h.l.Charge(context.Background(), c)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		h.t.Fatalf("charge %d: %v\n got %+v\nwant %+v", len(h.made), err, got, want)
	}
	if got.Allowed {
		h.made, h.answers = append(h.made, c), append(h.answers, got)
	}
}

func (h *history) cancel(nth int) {
	if nth < len(h.made) {
		want := h.model.Cancel(context.Background(), h.made[nth], h.answers[nth])
		got := h.l.Cancel(context.Background(), h.made[nth], h.answers[nth])
		if (got == nil) != (want == nil) {
			h.t.Fatalf("cancel %d: %v, want %v", nth, got, want)
		}
	}
}

func (h *history) compare() {
	want, _ := h.model.Usage(context.Background(), h.credential, h.limits)
	got, err := h.l.Usage(context.Background(), h.credential, h.limits)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		h.t.Fatalf("%v\n got %+v\nwant %+v", err, got, want)
	}
	found, err := h.l.CheckBucket(context.Background(), h.credential, "default", false)
	if err != nil || len(found) > 0 {
		h.t.Fatalf("%v, %+v", err, found)
	}
}

// A clock that is set back to before an anchored window began: what is charged then is not in it.
func TestBeforeTheAnchoredWindow(t *testing.T) {
	l, now := clocked(t)
	w, err := quota.ParseWindow("anchored 1h", "")
	if err != nil {
		t.Fatal(err)
	}
	limits := []quota.Limit{{Bucket: "default", Units: 100, Window: w}}
	var answers []string
	for _, on := range []quota.Ledger{l, &quotatest.Model{Now: l.Now}} {
		_, err := on.Learn(t.Context(), quota.Learn{Credential: "key1", Remaining: -1,
			Limit: limits[0], Reset: now.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		*now = now.Add(-time.Minute)
		d, err := on.Charge(t.Context(), quota.Charge{Credential: "key1", ID: "e", Limits: limits,
			Costs: []quota.Cost{{Bucket: "default", Units: 10}}})
		answers = append(answers, fmt.Sprint(d, err))
		*now = now.Add(time.Minute)
	}
	if answers[0] != answers[1] {
		t.Errorf("got\n%s, want\n%s", answers[0], answers[1])
	}
}

// A level that was kept is not used after a correction that leaves the running totals as they were.
func TestCorrectionsForgetLevels(t *testing.T) {
	l, now := clocked(t)
	limits, begin := restoring(t, 1000, "restoring 1/1m"), *now
	charge := func(units int64) {
		t.Helper()
		if d, err := l.Charge(t.Context(), aCharge(units, limits)); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	adjust := func(units int64, after time.Duration) {
		t.Helper()
		_, err := l.Adjust(t.Context(), quota.Adjust{Credential: "key1", ID: quota.NewID(time.Now()),
			Bucket: "default", Units: units, Until: begin.Add(after), Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
	}
	charge(5)
	*now = begin.Add(10 * time.Minute)
	for range 128 + 64 + 8 {
		charge(1)
	}
	adjust(-5, time.Minute)  // had come back before the others were charged
	adjust(5, 9*time.Minute) // has not
	u, err := l.Usage(t.Context(), "key1", limits)
	want := int64(128 + 64 + 8 + 4)
	if used := u.Buckets[0].Limits[0].Used; err != nil || used != want {
		t.Errorf("%d used, %v; want %d", used, err, want)
	}
	sound(t, l)
}
