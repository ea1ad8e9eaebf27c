package quotatest

import (
	"context"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// testDryRun: the answer is that of the charge, word for word but for its entry, and nothing at all
// is written.
func testDryRun(t *testing.T, h Harness) {
	ctx, l, cred := context.Background(), h.Open(t), newCredential()
	h.SetNow(t, epoch)
	both := []quota.Limit{dayLimit, searchLimit}
	charge := func(id string, change func(*quota.Charge), costs ...quota.Cost) quota.Charge {
		c := quota.Charge{Credential: cred, ID: id, Costs: costs, Limits: both[:len(costs)],
			Labels: quota.Labels{"job": "never seen before " + id}}
		change(&c)
		return c
	}
	def := func(units int64) quota.Cost { return quota.Cost{Bucket: "default", Units: units} }
	search := func(units int64) quota.Cost { return quota.Cost{Bucket: "search_list", Units: units} }
	plain := func(*quota.Charge) {}
	keyed := func(c *quota.Charge) { c.Key = "k" }
	observed := func(c *quota.Charge) { c.Observe = true }
	draws := func(c *quota.Charge) { c.Reservation = "default.r" }

	for i, c := range []quota.Charge{
		charge("first", plain, def(10)), // of a credential that is new
		charge("two", plain, def(5), search(2)),
		charge("denied", plain, def(5), search(1)),
		charge("observed", observed, def(5), search(1)),
		charge("key", keyed, def(7)),
		charge("known", keyed, def(7)),
		charge("reused", keyed, def(8)),
		charge("never", plain, def(101)),
		charge("drawn", draws, def(4)),
		charge("short", draws, def(40)),
		charge("full", plain, def(40)),
		charge("over", plain, def(14)),
	} {
		h.SetNow(t, epoch.Add(time.Duration(i)*time.Minute))
		if c.ID == "drawn" {
			r := quota.Reserve{Credential: cred, ID: "default.r", Units: 20, Limits: both[:1], TTL: time.Hour}
			if d, err := l.Reserve(ctx, r); err != nil || !d.Allowed {
				t.Fatalf("reserve: %+v, %v", d, err)
			}
		}
		before := picture(t, h, l, cred)
		dry := c
		dry.DryRun = true
		got, gotErr := l.Charge(ctx, dry)
		if after := picture(t, h, l, cred); after != before {
			t.Errorf("%s: the dry run changed the store\nfrom %s\nto   %s", c.ID, before, after)
		}
		if got.Entry != "" && !got.Replayed {
			t.Errorf("%s: the dry run names an entry: %+v", c.ID, got)
		}
		want, wantErr := l.Charge(ctx, c)
		if !got.Replayed {
			want.Entry = ""
		}
		if !sameDecision(got, want) || errorName(gotErr) != errorName(wantErr) {
			t.Errorf("%s:\ndry run %+v, %v\n charge %+v, %v", c.ID, got, gotErr, want, wantErr)
		}
	}
	b := &quota.Budget{Ledger: l, Credential: cred, Limits: both}
	d, cancel, err := b.Spend(ctx, quota.Call{Units: 1, DryRun: true})
	if err != nil || !d.Allowed {
		t.Fatalf("spend: %+v, %v", d, err)
	}
	if err := cancel(ctx); err != nil {
		t.Errorf("there was nothing to take back: %v", err)
	}
	log, err := l.Entries(ctx, quota.Query{Credential: cred, Bucket: "default"})
	if err != nil || len(log) != 6 {
		t.Fatalf("%d entries, %v, want 6: %+v", len(log), err, log)
	}
	for _, e := range log {
		if want := "never seen before " + e.ID; e.Labels["job"] != want {
			t.Errorf("entry %s lost its labels after a dry run with the same: %v", e.ID, e.Labels)
		}
	}
}
