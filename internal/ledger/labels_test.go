package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// TestLimitsPerLabel: a label value's bucket has the same bookings as the bucket itself.
func TestLimitsPerLabel(t *testing.T) {
	l, now := inMemory()
	*now = epoch
	whole := quota.Limit{Bucket: "default", Units: 100, Window: quota.Sliding(24 * time.Hour)}
	each := whole
	each.Units = 30
	b := &quota.Budget{Ledger: l, Credential: "key1", Limits: []quota.Limit{whole},
		PerLabel: []quota.LabelLimit{{Limit: each, Label: "team", Parts: map[string]int64{"ci": 50}}}}
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
		{"a call without a team has the units of any other", 1 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, quota.Call{Units: 30}) },
			"", "50 20 0 30", 0},
		{"and no more", 1 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, quota.Call{Units: 1}) },
			"default@team=(none) 24h until 25h0m0s", "50 20 0 30", 0},
		{"a hold counts at once", 2 * time.Hour,
			func() (quota.Decision, error) { return hold(team("ci", 25), quota.LapseCharge) },
			"", "75 45 0 30", 5},
		{"its team alone is out of units", 2 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, team("ci", 6)) },
			"default@team=ci 24h until 24h0m0s", "75 45 0 30", 0},
		{"its settlement names no bucket of a label", 2 * time.Hour,
			func() (quota.Decision, error) {
				c := cost(10)
				c.Costs = append(c.Costs, quota.Cost{Bucket: "default@team=ci", Units: 1})
				return b.Settle(ctx, held, c)
			}, "counts calls with the label", "75 45 0 30", 0},
		{"its settlement counts for the labels of the hold", 2 * time.Hour,
			func() (quota.Decision, error) { return b.Settle(ctx, held, cost(10)) },
			"", "60 30 0 30", 20},
		{"it gets the same answer again", 2 * time.Hour,
			func() (quota.Decision, error) { return b.Settle(ctx, held, cost(10)) },
			"", "60 30 0 30", 20},
		{"a hold that is released counts no more", 3 * time.Hour,
			func() (quota.Decision, error) {
				d, err := hold(team("web", 30), quota.LapseRelease)
				if given, err := b.Release(ctx, held); err != nil || len(given) != 1 {
					t.Errorf("released %v, %v", given, err)
				}
				return d, err
			}, "", "60 30 0 30", 0},
		{"a key charges once", 3 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, keyed(team("ci", 5), "k")) },
			"", "65 35 0 30", 15},
		{"however often it is sent", 3 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, keyed(team("ci", 5), "k")) },
			"", "65 35 0 30", 15},
		{"for one team", 3 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, keyed(team("web", 5), "k")) },
			`"charge 5 of default", and is now sent with another value of a label that has limits`,
			"65 35 0 30", 0},
		{"a cancelled charge counts no more", 3 * time.Hour,
			func() (quota.Decision, error) {
				d, cancel, err := b.Spend(ctx, team("web", 5))
				if err := cancel(ctx); err != nil {
					t.Error(err)
				}
				return d, err
			}, "", "65 35 0 30", 25},
		{"a draw has its place in the hold", 4 * time.Hour,
			func() (quota.Decision, error) {
				_, err := hold(team("ci", 10), quota.LapseRelease)
				if err != nil {
					return quota.Decision{}, err
				}
				return b.Draw(ctx, held, 4, nil) // the hold's labels apply
			}, "", "75 45 0 30", 5},
		{"and the rest is committed", 4 * time.Hour,
			func() (quota.Decision, error) { return b.Commit(ctx, held, 1) },
			"", "70 40 0 30", 10},
		{"a dry run charges nothing, of a new team either", 4 * time.Hour,
			func() (quota.Decision, error) {
				c := team("docs", 7)
				c.DryRun = true
				return b.Charge(ctx, c)
			}, "", "70 40 0 30", 23},
		{"a hold", 5 * time.Hour,
			func() (quota.Decision, error) { return hold(team("web", 20), quota.LapseCharge) },
			"", "90 40 20 30", 10},
		{"lasts as long as it is extended", 5 * time.Hour,
			func() (quota.Decision, error) {
				_, err := b.Extend(ctx, held, 2*time.Hour)
				return quota.Decision{Allowed: true}, err
			}, "", "90 40 20 30", 0},
		{"lapses into a charge of both", 8 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, team("web", 11)) },
			"default@team=web 24h until 31h0m0s", "90 40 20 30", 0},
		{"which a late settlement corrects in both", 8 * time.Hour,
			func() (quota.Decision, error) { return b.Settle(ctx, held, cost(3)) },
			"", "73 40 3 30", 27},
		{"all together have no more than the whole", 8 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, team("docs", 28)) },
			"default 24h until 24h0m0s", "73 40 3 30", 0},
		{"every letter of a name counts", 8 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, team("ci=~ü/+|:{}\"", 2)) },
			"", "75 40 3 30", 25},
		{"each unit leaves when it is a day old", 24 * time.Hour,
			func() (quota.Decision, error) { return b.Charge(ctx, team("ci", 30)) },
			"", "85 50 3 30", 0},
	} {
		*now = epoch.Add(step.at)
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
		if used := takenOf(t, b, "ci", "web", ""); used != step.used {
			t.Errorf("%s: %s are taken, want %s", step.what, used, step.used)
		}
	}
}

// takenOf returns the units used and held of the bucket "default", and of values of its label.
func takenOf(t *testing.T, b *quota.Budget, values ...string) string {
	t.Helper()
	names := []string{"default"}
	for _, v := range values {
		names = append(names, quota.LabelBucket("default", "team", v))
	}
	var limits []quota.Limit
	for _, name := range names {
		limits = append(limits, b.LimitsOn(name)...)
	}
	usage, err := b.Ledger.Usage(t.Context(), b.Credential, limits)
	must(t, err)
	var all []string
	for _, u := range usage.Buckets {
		all = append(all, fmt.Sprint(u.Limits[0].Used+u.Held))
	}
	return strings.Join(all, " ")
}
