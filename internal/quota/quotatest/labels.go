package quotatest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// teams is a budget with a limit for all and one for each team.
func (s *subject) teams(units int64, parts map[string]int64) *quota.Budget {
	whole := within(units, hours(24))
	each := whole
	each.Units = 30
	return &quota.Budget{Ledger: s.ledger, Credential: s.credential, Limits: []quota.Limit{whole},
		PerLabel: []quota.LabelLimit{{Limit: each, Label: "team", Parts: parts}}}
}

// testLabelSteps: a label value's bucket has the same bookings as the bucket itself.
func testLabelSteps(t *testing.T, h Harness) {
	s := newSubject(t, h)
	b := s.teams(100, map[string]int64{"ci": 50})
	ctx := t.Context()
	team := func(name string, units int64) quota.Call {
		return quota.Call{Units: units, Labels: quota.Labels{"team": name}}
	}
	keyed := func(c quota.Call, key string) quota.Call { c.Key = key; return c }
	var held string // the last hold
	hold := func(c quota.Call, lapse quota.Lapse) (quota.Decision, error) {
		d, err := b.Reserve(ctx, quota.ReserveRequest{Call: c, TTL: time.Hour, Lapse: lapse})
		if d.Allowed {
			held = d.Reservation
		}
		return d, err
	}
	cost := func(units int64) quota.Call {
		return quota.Call{Costs: []quota.Cost{{Bucket: "default", Units: units}},
			Labels: quota.Labels{"team": "web"}} // the hold's labels override these
	}
	for _, step := range []struct {
		what string
		at   time.Duration
		do   func() (quota.Decision, error)
		want string // "", the limit that denies, or an error
		used string // including held units: all, ci, web, and calls without a team
		left int64  // of what is allowed
	}{
		{"a charge counts for all and for the team", 0,
			func() (quota.Decision, error) { return b.Charge(ctx, team("ci", 20)) },
			"", "20 20 0 0", 30},
		{"a team has no more than its part", 0,
			func() (quota.Decision, error) { return b.Charge(ctx, team("ci", 31)) },
			"default@team=ci 24h until 24h0m0s", "20 20 0 0", 0},
		{"nor more at once than that", 0,
			func() (quota.Decision, error) { return b.Charge(ctx, team("web", 31)) },
			"cost exceeds the limit", "20 20 0 0", 0},
		{"a call without a team has the units of any other", hours(1),
			func() (quota.Decision, error) { return b.Charge(ctx, quota.Call{Units: 30}) },
			"", "50 20 0 30", 0},
		{"and no more", hours(1),
			func() (quota.Decision, error) { return b.Charge(ctx, quota.Call{Units: 1}) },
			"default@team=(none) 24h until 25h0m0s", "50 20 0 30", 0},
		{"a hold counts at once", hours(2),
			func() (quota.Decision, error) { return hold(team("ci", 25), quota.LapseCharge) },
			"", "75 45 0 30", 5},
		{"its team alone is out of units", hours(2),
			func() (quota.Decision, error) { return b.Charge(ctx, team("ci", 6)) },
			"default@team=ci 24h until 24h0m0s", "75 45 0 30", 0},
		{"its settlement names no bucket of a label", hours(2),
			func() (quota.Decision, error) {
				c := cost(10)
				c.Costs = append(c.Costs, quota.Cost{Bucket: "default@team=ci", Units: 1})
				return b.Settle(ctx, held, c)
			}, "counts calls with the label", "75 45 0 30", 0},
		{"its settlement counts for the labels of the hold", hours(2),
			func() (quota.Decision, error) { return b.Settle(ctx, held, cost(10)) },
			"", "60 30 0 30", 20},
		{"it gets the same answer again", hours(2),
			func() (quota.Decision, error) { return b.Settle(ctx, held, cost(10)) },
			"", "60 30 0 30", 20},
		{"a hold that is released counts no more", hours(3),
			func() (quota.Decision, error) {
				d, err := hold(team("web", 30), quota.LapseRelease)
				if given, err := b.Release(ctx, held); err != nil || len(given) != 1 {
					t.Errorf("released %v, %v", given, err)
				}
				return d, err
			}, "", "60 30 0 30", 0},
		{"a key charges once", hours(3),
			func() (quota.Decision, error) { return b.Charge(ctx, keyed(team("ci", 5), "k")) },
			"", "65 35 0 30", 15},
		{"however often it is sent", hours(3),
			func() (quota.Decision, error) { return b.Charge(ctx, keyed(team("ci", 5), "k")) },
			"", "65 35 0 30", 15},
		{"for one team", hours(3),
			func() (quota.Decision, error) { return b.Charge(ctx, keyed(team("web", 5), "k")) },
			"idempotency key was used before", "65 35 0 30", 0},
		{"a cancelled charge counts no more", hours(3),
			func() (quota.Decision, error) {
				d, cancel, err := b.Spend(ctx, team("web", 5))
				if err := cancel(ctx); err != nil {
					t.Error(err)
				}
				return d, err
			}, "", "65 35 0 30", 25},
		{"a draw has its place in the hold", hours(4),
			func() (quota.Decision, error) {
				_, err := hold(team("ci", 10), quota.LapseRelease)
				if err != nil {
					return quota.Decision{}, err
				}
				return b.Draw(ctx, held, 4, nil) // the hold's labels apply
			}, "", "75 45 0 30", 5},
		{"and the rest is committed", hours(4),
			func() (quota.Decision, error) { return b.Commit(ctx, held, 1) },
			"", "70 40 0 30", 10},
		{"a dry run charges nothing, of a new team either", hours(4),
			func() (quota.Decision, error) {
				c := team("docs", 7)
				c.DryRun = true
				return b.Charge(ctx, c)
			}, "", "70 40 0 30", 23},
		{"a hold", hours(5),
			func() (quota.Decision, error) { return hold(team("web", 20), quota.LapseCharge) },
			"", "90 40 20 30", 10},
		{"lasts as long as it is extended", hours(5),
			func() (quota.Decision, error) {
				_, err := b.Extend(ctx, held, 2*time.Hour)
				return quota.Decision{Allowed: true}, err
			}, "", "90 40 20 30", 0},
		{"lapses into a charge of both", hours(8),
			func() (quota.Decision, error) { return b.Charge(ctx, team("web", 11)) },
			"default@team=web 24h until 31h0m0s", "90 40 20 30", 0},
		{"which a late settlement corrects in both", hours(8),
			func() (quota.Decision, error) { return b.Settle(ctx, held, cost(3)) },
			"", "73 40 3 30", 27},
		{"all together have no more than the whole", hours(8),
			func() (quota.Decision, error) { return b.Charge(ctx, team("docs", 28)) },
			"default 24h until 24h0m0s", "73 40 3 30", 0},
		{"every letter of a name counts", hours(8),
			func() (quota.Decision, error) { return b.Charge(ctx, team("ci=~ü/+|:{}\"", 2)) },
			"", "75 40 3 30", 25},
		{"each unit leaves when it is a day old", hours(24),
			func() (quota.Decision, error) { return b.Charge(ctx, team("ci", 30)) },
			"", "85 50 3 30", 0},
	} {
		s.at(step.at)
		d, err := step.do()
		got := d.Limit
		if err != nil {
			got = err.Error()
		} else if !d.Allowed {
			got += " until " + d.RetryAt.Sub(epoch).String()
		}
		if got != step.want && (err == nil || step.want == "" || !strings.Contains(got, step.want)) {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
		if left, ok := d.Remaining["default"]; d.Allowed && ok && left != step.left ||
			len(d.Units) > 1 || len(d.Remaining) > 1 {
			t.Errorf("%s: left %v of %v, want %d", step.what, d.Remaining, d.Units, step.left)
		}
		if used := s.takenOf(b, "ci", "web", ""); used != step.used {
			t.Errorf("%s: %s are taken, want %s", step.what, used, step.used)
		}
	}
}

// takenOf returns the units used and held of the bucket "default", and of values of its label.
func (s *subject) takenOf(b *quota.Budget, values ...string) string {
	s.Helper()
	names := []string{"default"}
	for _, v := range values {
		names = append(names, quota.LabelBucket("default", "team", v))
	}
	var limits []quota.Limit
	for _, name := range names {
		limits = append(limits, b.LimitsOn(name)...)
	}
	usage, err := s.ledger.Usage(s.Context(), s.credential, limits)
	if err != nil {
		s.Fatal(err)
	}
	var all []string
	for _, u := range usage.Buckets {
		all = append(all, fmt.Sprint(u.Limits[0].Used+u.Held))
	}
	return strings.Join(all, " ")
}

// testLabelsAtOnce lets three teams take exactly their parts, and together exactly the whole.
func testLabelsAtOnce(t *testing.T, h Harness) {
	s := newSubject(t, h)
	var calls sync.WaitGroup
	for i := range 30 {
		b := s.teams(60, map[string]int64{"ci": 20, "web": 25})
		b.Ledger = h.Open(t)
		calls.Go(func() {
			call := quota.Call{Units: 1, Labels: quota.Labels{"team": []string{"ci", "web", "docs"}[i%3]}}
			for range 4 {
				if d, err := b.Charge(t.Context(), call); err != nil || d.Limit != "" && d.Allowed {
					t.Errorf("%+v, %v", d, err)
				}
			}
		})
	}
	calls.Wait()
	b := s.teams(60, map[string]int64{"ci": 20, "web": 25})
	var sum, whole int64
	var parts [3]int64
	taken := s.takenOf(b, "ci", "web", "docs")
	fmt.Sscan(taken, &whole, &parts[0], &parts[1], &parts[2])
	for i, most := range []int64{20, 25, 30} {
		if sum += parts[i]; parts[i] > most {
			t.Errorf("a team took %d of %d", parts[i], most)
		}
	}
	if whole != 60 || sum != 60 {
		t.Errorf("taken: %s, want 60 together", taken)
	}
}

// testLabelValues denies one value too many, and forgets idle values.
func testLabelValues(t *testing.T, h Harness) {
	s := newSubject(t, h)
	b := s.teams(100_000, nil)
	b.PerLabel[0].Window = quota.Sliding(2 * time.Hour)
	charge := func(b *quota.Budget, name string) quota.Decision {
		d, err := b.Charge(t.Context(), quota.Call{Units: 1, Labels: quota.Labels{"team": name}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	some := quota.Charge{Credential: s.credential, Limits: b.Limits, NewValues: true}
	for i := range quota.MaxValues { // as many at once as one charge may have
		some.Costs = append(some.Costs, quota.Cost{Units: 1,
			Bucket: quota.LabelBucket("default", "team", fmt.Sprint("t", i))})
		if len(some.Costs) == quota.MaxBuckets-1 || i == quota.MaxValues-1 {
			some.ID, some.Unlimited = quota.NewID(time.Now()), true
			some.Costs = append(some.Costs, quota.Cost{Bucket: "default", Units: 1})
			s.must(some)
			some.Costs = nil
		}
	}
	s.at(time.Hour)
	d := charge(b, "new")
	if d.Allowed || d.Limit != "1000 values per label:team of default" ||
		!d.RetryAt.Equal(epoch.Add(2*time.Hour)) {
		t.Errorf("a value too many: %+v", d)
	}
	if d := charge(b, "t7"); !d.Allowed {
		t.Errorf("a known value: %+v", d)
	}
	observed := *b
	observed.Observe = true
	if d := charge(&observed, "new"); !d.Allowed {
		t.Errorf("observed: %+v", d)
	}
	names := func() (values []string) {
		known, err := s.ledger.BucketsOf(t.Context(), s.credential)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(quota.BucketNames(known),
			func(name string) bool { return !quota.IsLabelBucket(name) })
	}
	if n := len(names()); n != quota.MaxValues {
		t.Errorf("%d values are kept", n)
	}
	s.at(2 * time.Hour) // all but t7 are idle
	if d := charge(b, "new"); !d.Allowed {
		t.Errorf("after the window: %+v", d)
	}
	s.at(100 * time.Hour) // and have been forgotten
	for i := range 3 {
		if d := charge(b, fmt.Sprint("later", i)); !d.Allowed {
			t.Errorf("%+v", d)
		}
	}
	if n := len(names()); h.Forgets && n > quota.MaxValues-3 {
		t.Errorf("%d values are kept", n)
	}
	_, err := b.Charge(t.Context(), quota.Call{Units: 1, Bucket: "default@team=t1"})
	if !errors.Is(err, quota.ErrMalformed) {
		t.Errorf("a charge of a value's bucket: %v", err)
	}
}
