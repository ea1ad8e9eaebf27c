package quotatest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testSums: what was spent is added up by grains of time and by labels, whatever becomes of the
// entries.
func testSums(t *testing.T, h Harness) {
	l := h.Open(t)
	s := summed{t, l, newCredential()}
	us, end := labels("US", "r1"), quota.GrainOf(epoch).Add(quota.Grain)
	at := func(now time.Time) { h.SetNow(t, now) }

	at(epoch)
	s.charge(us, 1)
	_, last := s.charge(labels("US", "r2"), 2)
	s.charge(labels("BR", ""), 4)
	s.charge(nil, 8)
	at(end.Add(-time.Microsecond))
	s.charge(us, 16)
	at(end)
	s.charge(us, 32)
	s.want("two grains", time.Time{},
		s.sum(epoch, nil, 8, 1), s.sum(epoch, labels("BR", ""), 4, 1),
		s.sum(epoch, labels("US", ""), 19, 3), s.sum(end, labels("US", ""), 32, 1))
	s.want("from the second grain on", end, s.sum(end, labels("US", ""), 32, 1))
	s.want("from later on", end.Add(time.Microsecond))

	cancelled, d := s.charge(us, 64)
	s.cancel(cancelled, d)
	other, d2 := s.charge(labels("BR", ""), 64)
	s.cancel(other, d2)
	s.want("cancelled", end, s.sum(end, labels("US", ""), 32, 1))

	at(end.Add(quota.Grain))
	s.observe(labels("BR", ""), 5000)
	denied := labels("BR", "").With(quota.Labels{quota.LabelDenied: dayLimit.Name()})
	s.want("observed", end.Add(quota.Grain), s.sum(end.Add(quota.Grain), denied, 5000, 1))

	s.exactAfter("the middle of a grain", last.At, 4+8+16+32+5000)
	s.exactAfter("the end of a grain", end.Add(-time.Microsecond), 32+5000)
	s.exactAfter("the start of a grain", end, 5000)
	s.exactAfter("the beginning", time.Time{}, 1+2+4+8+16+32+5000)
}

// testSumsOfReservations: a commit is an entry of its own, and a draw, cancelled, is none.
func testSumsOfReservations(t *testing.T, h Harness) {
	ctx, l := context.Background(), h.Open(t)
	s := summed{t, l, newCredential()}
	h.SetNow(t, epoch)
	r := quota.Reserve{
		Credential: s.credential, ID: "default.r", Units: 50, TTL: time.Hour, Limits: []quota.Limit{dayLimit},
	}
	if d, err := l.Reserve(ctx, r); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	s.want("reserved", time.Time{})
	draw := s.newCharge(labels("US", "r1"), 7)
	draw.Reservation = r.ID
	s.cancel(draw, must(t, l, draw))
	s.want("a draw, cancelled", time.Time{})
	again := s.newCharge(labels("US", "r2"), 9)
	again.Reservation = r.ID
	must(t, l, again)
	c := quota.Commit{
		Credential: s.credential, Reservation: r.ID, ID: quota.NewID(epoch), Units: 11,
		Labels: labels("US", "r2"),
	}
	for range 2 {
		if _, err := l.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	s.want("committed", time.Time{}, s.sum(epoch, labels("US", ""), 20, 2))
}

// testSumsTrimmed: sums are forgotten with the entries, one by one.
func testSumsTrimmed(t *testing.T, h Harness) {
	ctx, l := context.Background(), h.Open(t)
	s := summed{t, l, newCredential()}
	for i := range 200 {
		h.SetNow(t, epoch.Add(time.Duration(i)*time.Minute))
		s.charge(labels([]string{"US", "BR"}[i%2], ""), 1)
	}
	for i := range 5 {
		h.SetNow(t, epoch.Add(quota.Retention+hours(4)+time.Duration(i)*quota.Grain))
		s.charge(labels("DE", ""), 1)
		left, err := l.Entries(ctx, quota.Query{Credential: s.credential, Bucket: "default"})
		if err != nil {
			t.Fatal(err)
		}
		s.want("trimmed", time.Time{}, quota.AddUp(left)...)
	}
}

// testBetween: units between two moments, the first of which does not count.
func testBetween(t *testing.T, h Harness) {
	ctx, l := context.Background(), h.Open(t)
	s := summed{t, l, newCredential()}
	second := func(i int) time.Time { return epoch.Add(time.Duration(i) * time.Second) }
	var last quota.Charge
	var d quota.Decision
	for i, units := range []int64{1, 10, 100, 1000} {
		h.SetNow(t, second(i))
		last, d = s.charge(nil, units)
	}
	before := epoch.Add(-time.Microsecond)
	for _, test := range []struct {
		from, to time.Time
		want     int64
	}{
		{before, second(9), 1111}, {epoch, second(9), 1110}, {before, epoch, 1},
		{second(1), second(2), 100}, {second(1), second(2).Add(-time.Microsecond), 0},
		{second(2), second(1), 0}, {second(3), second(9), 0}, {before.Add(-hours(9)), before, 0},
	} {
		got, err := l.Between(ctx, s.credential, "default", test.from, test.to)
		if err != nil || got != test.want {
			t.Errorf("between %s and %s: %d, %v, want %d", test.from, test.to, got, err, test.want)
		}
	}
	s.cancel(last, d)
	if got, err := l.Between(ctx, s.credential, "default", before, second(9)); err != nil || got != 111 {
		t.Errorf("after the last was cancelled: %d, %v, want 111", got, err)
	}
	if got, err := l.Between(ctx, s.credential, "nothing", before, second(9)); err != nil || got != 0 {
		t.Errorf("in a bucket that was never used: %d, %v", got, err)
	}
}

// testPages: a log is read in pages, each from where the one before ended.
func testPages(t *testing.T, h Harness) {
	ctx, l := context.Background(), h.Open(t)
	s := summed{t, l, newCredential()}
	h.SetNow(t, epoch)
	for i := range 7 {
		s.charge(nil, int64(i+1))
	}
	q := quota.Query{Credential: s.credential, Bucket: "default", First: 3}
	var sizes []int
	var units int64
	for {
		page, err := l.Entries(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if units++; e.Units != units {
				t.Errorf("entry of %d units, want %d", e.Units, units)
			}
		}
		sizes, q.Since = append(sizes, len(page)), page[len(page)-1].At
	}
	if len(sizes) != 3 || sizes[0] != 3 || sizes[2] != 1 {
		t.Errorf("pages of %d entries, want 3, 3 and 1", sizes)
	}
	q.Since = time.Time{}
	for i, until := range []time.Time{epoch, epoch.Add(time.Microsecond), epoch.Add(-time.Microsecond)} {
		q.Until = until
		page, err := l.Entries(ctx, q)
		if want := []int{1, 2, 0}[i]; err != nil || len(page) != want {
			t.Errorf("until %s: %d entries, %v, want %d", until, len(page), err, want)
		}
		q.First, q.Limit = 0, 1
		if page, err = l.Entries(ctx, q); err != nil || len(page) > 0 && !page[0].At.Equal(until) {
			t.Errorf("the newest until %s: %+v, %v", until, page, err)
		}
		q.First, q.Limit = 3, 0
	}
}

// summed is a bucket whose sums are looked at.
type summed struct {
	t          *testing.T
	ledger     quota.Ledger
	credential string
}

// labels are a region's, of a run.
func labels(region, run string) quota.Labels {
	return kept(quota.Labels{quota.LabelRegion: region, quota.LabelRun: run})
}

// plenty has room for all that these cases charge.
var plenty = quota.Limit{Bucket: "default", Units: 10_000, Window: quota.Sliding(hours(24))}

func (s summed) newCharge(l quota.Labels, units int64) quota.Charge {
	return quota.Charge{
		Credential: s.credential, ID: quota.NewID(time.Now()), Labels: l, Limits: []quota.Limit{plenty},
		Costs: []quota.Cost{{Bucket: "default", Units: units}},
	}
}

func (s summed) charge(l quota.Labels, units int64) (quota.Charge, quota.Decision) {
	c := s.newCharge(l, units)
	return c, must(s.t, s.ledger, c)
}

// observe charges what would be denied.
func (s summed) observe(l quota.Labels, units int64) {
	c := s.newCharge(l, units)
	c.Limits, c.Observe = []quota.Limit{dayLimit}, true
	if d := must(s.t, s.ledger, c); !d.Observed {
		s.t.Errorf("%+v would have been allowed", d)
	}
}

func (s summed) cancel(c quota.Charge, d quota.Decision) {
	s.t.Helper()
	if err := s.ledger.Cancel(context.Background(), c, d); err != nil {
		s.t.Fatal(err)
	}
}

func (s summed) sum(at time.Time, l quota.Labels, units, charges int64) quota.Sum {
	return quota.Sum{At: quota.GrainOf(at), Labels: l, Units: units, Charges: charges}
}

func (s summed) want(what string, since time.Time, want ...quota.Sum) {
	s.t.Helper()
	got, err := s.ledger.Sums(context.Background(),
		quota.SumQuery{Credential: s.credential, Bucket: "default", Since: since})
	if err != nil {
		s.t.Fatal(err)
	}
	if a, b := sumsText(got), sumsText(want); a != b {
		s.t.Errorf("%s:\ngot:\n%swant:\n%s", what, a, b)
	}
}

// exactAfter makes sure that no unit of a grain that had begun is lost or counted twice.
func (s summed) exactAfter(what string, since time.Time, want int64) {
	s.t.Helper()
	sums, err := quota.SumsAfter(context.Background(), s.ledger,
		quota.SumQuery{Credential: s.credential, Bucket: "default", Since: since})
	var units int64
	for _, sum := range sums {
		units += sum.Units
	}
	if err != nil || units != want {
		s.t.Errorf("after %s: %d units, %v, want %d:\n%s", what, units, err, want, sumsText(sums))
	}
}

// sumsText is sums, one a line.
func sumsText(sums []quota.Sum) string {
	var b strings.Builder
	for _, s := range sums {
		fmt.Fprintf(&b, "%s %q: %d units in %d\n", s.At.UTC().Format(time.RFC3339), s.Labels.Encode(),
			s.Units, s.Charges)
	}
	return b.String()
}
