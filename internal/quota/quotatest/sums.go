package quotatest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// plenty has room for all that these cases charge.
var plenty = within(10_000, hours(24))

// testSums: what was spent is added up by grains of time and by labels, whatever becomes of the
// entries.
func testSums(t *testing.T, h Harness) {
	s := newSubject(t, h, plenty)
	us, br, end := labels("US", "r1"), labels("BR", ""), quota.GrainOf(epoch).Add(quota.Grain)
	s.chargeAs(us, 1)
	_, last := s.chargeAs(labels("US", "r2"), 2)
	s.chargeAs(br, 4)
	s.chargeAs(nil, 8)
	h.SetNow(t, end.Add(-time.Microsecond))
	s.chargeAs(us, 16)
	h.SetNow(t, end)
	s.chargeAs(us, 32)
	s.wantSums("two grains", time.Time{}, sum(epoch, nil, 8, 1), sum(epoch, br, 4, 1),
		sum(epoch, labels("US", ""), 19, 3), sum(end, labels("US", ""), 32, 1))
	s.wantSums("from the second grain on", end, sum(end, labels("US", ""), 32, 1))
	s.wantSums("from later on", end.Add(time.Microsecond))

	s.cancel(s.chargeAs(us, 64))
	s.cancel(s.chargeAs(br, 64))
	s.wantSums("cancelled", end, sum(end, labels("US", ""), 32, 1))

	third := end.Add(quota.Grain)
	h.SetNow(t, third)
	c := s.newCharge(5000)
	c.Labels, c.Limits, c.Observe = br, []quota.Limit{dayLimit}, true
	if d := s.must(c); !d.Observed {
		t.Errorf("%+v would have been allowed", d)
	}
	denied := br.With(quota.Labels{quota.LabelDenied: dayLimit.Name()})
	s.wantSums("observed", third, sum(third, denied, 5000, 1))

	// No unit of a grain that had begun is lost or counted twice.
	for _, c := range []struct {
		since time.Time
		want  int64
	}{
		{last.At, 4 + 8 + 16 + 32 + 5000}, {end.Add(-time.Microsecond), 32 + 5000}, {end, 5000},
		{time.Time{}, 1 + 2 + 4 + 8 + 16 + 32 + 5000},
	} {
		q := quota.SumQuery{Credential: s.credential, Bucket: "default", Since: c.since}
		sums, err := quota.SumsAfter(t.Context(), s.ledger, q)
		var units int64
		for _, sum := range sums {
			units += sum.Units
		}
		if err != nil || units != c.want {
			t.Errorf("after %s: %d, %v, want %d:\n%s", c.since, units, err, c.want, sumsText(sums))
		}
	}
}

// testSumsOfReservations: a commit is an entry of its own, and a draw, cancelled, is none.
func testSumsOfReservations(t *testing.T, h Harness) {
	s := newSubject(t, h, plenty)
	s.reserve("default.r", 50, time.Hour)
	s.wantSums("reserved", time.Time{})
	draw := s.newCharge(7)
	draw.Labels, draw.Reservation = labels("US", "r1"), "default.r"
	s.cancel(draw, s.must(draw))
	s.wantSums("a draw, cancelled", time.Time{})
	again := s.newCharge(9)
	again.Labels, again.Reservation = labels("US", "r2"), "default.r"
	s.must(again)
	for range 2 {
		_, err := s.ledger.Settle(t.Context(), quota.Settle{Credential: s.credential,
			Reservation: "default.r", ID: "c", Labels: labels("US", "r2"),
			Costs: []quota.Cost{{Bucket: "default", Units: 11}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.wantSums("committed", time.Time{}, sum(epoch, labels("US", ""), 20, 2))
}

// testSumsTrimmed: sums are forgotten with the entries, one by one.
func testSumsTrimmed(t *testing.T, h Harness) {
	s := newSubject(t, h, plenty)
	for i := range 200 {
		s.at(time.Duration(i) * time.Minute)
		s.chargeAs(labels([]string{"US", "BR"}[i%2], ""), 1)
	}
	for i := range 5 {
		s.at(quota.Retention + hours(4) + time.Duration(i)*quota.Grain)
		s.chargeAs(labels("DE", ""), 1)
		s.wantSums("trimmed", time.Time{}, quota.AddUp(s.log("default"))...)
	}
}

// testBetween: units between two moments, the first of which does not count.
func testBetween(t *testing.T, h Harness) {
	s := newSubject(t, h, plenty)
	second := func(i int) time.Time { return epoch.Add(time.Duration(i) * time.Second) }
	var last quota.Charge
	var d quota.Decision
	for i, units := range []int64{1, 10, 100, 1000} {
		h.SetNow(t, second(i))
		last, d = s.charge(units)
	}
	want := func(bucket string, from, to time.Time, want int64) {
		t.Helper()
		got, err := s.ledger.Between(t.Context(), s.credential, bucket, from, to)
		if err != nil || got != want {
			t.Errorf("%s between %s and %s: %d, %v, want %d", bucket, from, to, got, err, want)
		}
	}
	before := epoch.Add(-time.Microsecond)
	want("default", before, second(9), 1111)
	want("default", epoch, second(9), 1110)
	want("default", before, epoch, 1)
	want("default", second(1), second(2), 100)
	want("default", second(1), second(2).Add(-time.Microsecond), 0)
	want("default", second(2), second(1), 0)
	want("default", second(3), second(9), 0)
	want("default", before.Add(-hours(9)), before, 0)
	want("never-used", before, second(9), 0)
	s.cancel(last, d)
	want("default", before, second(9), 111)
}

// testPages: a log is read in pages, each from where the one before ended.
func testPages(t *testing.T, h Harness) {
	s := newSubject(t, h, plenty)
	for i := range int64(7) {
		s.charge(i + 1)
	}
	entries := func(q quota.Query) []quota.Entry {
		q.Credential, q.Bucket = s.credential, "default"
		page, err := s.ledger.Entries(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	var sizes []int
	var units int64
	q := quota.Query{First: 3}
	for page := entries(q); len(page) > 0; page = entries(q) {
		for _, e := range page {
			if units++; e.Units != units {
				t.Errorf("entry of %d units, want %d", e.Units, units)
			}
		}
		sizes, q.Since = append(sizes, len(page)), page[len(page)-1].At
	}
	if !slices.Equal(sizes, []int{3, 3, 1}) {
		t.Errorf("pages of %d entries, want 3, 3 and 1", sizes)
	}
	for want, until := range []time.Time{
		epoch.Add(-time.Microsecond), epoch, epoch.Add(time.Microsecond),
	} {
		if page := entries(quota.Query{First: 3, Until: until}); len(page) != want {
			t.Errorf("until %s: %d entries, want %d", until, len(page), want)
		}
		page := entries(quota.Query{Limit: 1, Until: until})
		if len(page) > 0 && !page[0].At.Equal(until) {
			t.Errorf("the newest until %s: %+v", until, page)
		}
	}
}

// labels are a region's, of a run.
func labels(region, run string) quota.Labels {
	return kept(quota.Labels{quota.LabelRegion: region, quota.LabelRun: run})
}

func (s *subject) chargeAs(l quota.Labels, units int64) (quota.Charge, quota.Decision) {
	s.Helper()
	c := s.newCharge(units)
	c.Labels = l
	return c, s.must(c)
}

func sum(at time.Time, l quota.Labels, units, charges int64) quota.Sum {
	return quota.Sum{At: quota.GrainOf(at), Labels: l, Units: units, Charges: charges}
}

func (s *subject) wantSums(what string, since time.Time, want ...quota.Sum) {
	s.Helper()
	q := quota.SumQuery{Credential: s.credential, Bucket: "default", Since: since}
	got, err := s.ledger.Sums(s.Context(), q)
	if a, b := sumsText(got), sumsText(want); err != nil || a != b {
		s.Errorf("%s: %v, got:\n%swant:\n%s", what, err, a, b)
	}
}

// sumsText is sums, one a line.
func sumsText(sums []quota.Sum) string {
	var b strings.Builder
	for _, s := range sums {
		fmt.Fprintf(&b, "%s %q: %d units in %d\n", s.At.UTC().Format(time.RFC3339),
			s.Labels.Encode(), s.Units, s.Charges)
	}
	return b.String()
}
