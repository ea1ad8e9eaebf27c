package quotatest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

var (
	dayLimit    = quota.Limit{Bucket: "default", Units: 100, Window: quota.Sliding(24 * time.Hour)}
	searchLimit = quota.Limit{Bucket: "search_list", Units: 2, Window: quota.Sliding(24 * time.Hour)}
)

// testDenialChangesNothing is the invariant I7: whatever is refused leaves the store as it was.
func testDenialChangesNothing(t *testing.T, h Harness) {
	ctx, l, cred := context.Background(), h.Open(t), newCredential()
	h.SetNow(t, epoch)
	both := []quota.Limit{dayLimit, searchLimit}
	must(t, l, quota.Charge{Credential: cred, ID: "a", Key: "k", Costs: []quota.Cost{{Bucket: "default", Units: 60}, {Bucket: "search_list", Units: 2}},
		Limits: both, Labels: quota.Labels{"job": "sweep"}})
	first := must(t, l, quota.Charge{Credential: cred, ID: "b", Costs: []quota.Cost{{Bucket: "default", Units: 1}}, Limits: both[:1]})
	if d, err := l.Reserve(ctx, quota.Reserve{Credential: cred, ID: "default.r", Units: 30, Limits: both[:1], TTL: time.Hour}); err != nil || !d.Allowed {
		t.Fatalf("reserve: %+v, %v", d, err)
	}
	plain := quota.Charge{Credential: cred, ID: "x", Costs: []quota.Cost{{Bucket: "default", Units: 10}}, Limits: both[:1],
		Labels: quota.Labels{"job": "never seen before"}}
	change := func(f func(*quota.Charge)) func() (quota.Decision, error) {
		c := plain
		f(&c)
		return func() (quota.Decision, error) { return l.Charge(ctx, c) }
	}
	refused := map[string]func() (quota.Decision, error){
		"too much":   change(func(*quota.Charge) {}),
		"with a key": change(func(c *quota.Charge) { c.Key = "new" }),
		"one of two": change(func(c *quota.Charge) {
			c.Costs = []quota.Cost{{Bucket: "default", Units: 1}, {Bucket: "search_list", Units: 1}}
			c.Limits = both
		}),
		"new credential": change(func(c *quota.Charge) { c.Costs = []quota.Cost{{Bucket: "default", Units: 101}} }),
		"key reused":     change(func(c *quota.Charge) { c.Key = "k" }),
		"no reservation": change(func(c *quota.Charge) { c.Reservation = "default.unknown" }),
		"short": change(func(c *quota.Charge) {
			c.Reservation = "default.r"
			c.Costs = []quota.Cost{{Bucket: "default", Units: 31}}
		}),
		"reservation": func() (quota.Decision, error) {
			return l.Reserve(ctx, quota.Reserve{Credential: cred, ID: "default.s", Key: "n", Units: 10, Limits: both[:1], TTL: time.Hour})
		},
		"same again": func() (quota.Decision, error) {
			return l.Reserve(ctx, quota.Reserve{Credential: cred, ID: "default.r", Units: 1, Limits: both[:1], TTL: time.Hour})
		},
		"commit unknown": func() (quota.Decision, error) {
			return l.Commit(ctx, quota.Commit{Credential: cred, Reservation: "default.q", ID: "y", Units: 1})
		},
		"commit too much": func() (quota.Decision, error) {
			return l.Commit(ctx, quota.Commit{Credential: cred, Reservation: "default.r", ID: "y", Units: 31})
		},
		"release unknown": func() (quota.Decision, error) {
			_, err := l.Release(ctx, cred, "default.q")
			return quota.Decision{}, err
		},
		"cancel unknown": func() (quota.Decision, error) {
			c := plain
			c.Costs, c.Limits, c.ID = []quota.Cost{{Bucket: "default", Units: 1}, {Bucket: "search_list", Units: 1}}, both, "b"
			return quota.Decision{}, l.Cancel(ctx, c, first) // is in one of the buckets only
		},
	}
	for name, ask := range refused {
		t.Run(name, func(t *testing.T) {
			before := picture(t, h, l, cred)
			d, err := ask()
			if d.Allowed || (err == nil) == (d.RetryAt.IsZero()) {
				t.Errorf("not refused: %+v, %v", d, err)
			}
			if after := picture(t, h, l, cred); after != before {
				t.Errorf("it changed the store\nfrom %s\nto   %s", before, after)
			}
		})
	}
}

// picture is all that can be seen of a credential: by the ledger's own words, and in the store if
// the harness can.
func picture(t *testing.T, h Harness, l quota.Ledger, credential string) string {
	t.Helper()
	ctx, text := context.Background(), ""
	for _, limit := range []quota.Limit{dayLimit, searchLimit} {
		usage, err := l.Usage(ctx, credential, []quota.Limit{limit})
		held, err2 := l.Reservations(ctx, credential, limit.Bucket)
		log, err3 := l.Entries(ctx, quota.Query{Credential: credential, Bucket: limit.Bucket})
		if err != nil || err2 != nil || err3 != nil {
			t.Fatal(err, err2, err3)
		}
		text += fmt.Sprintf("%+v\n%+v\n%+v\n", usage, held, log)
	}
	if h.Dump != nil {
		text += h.Dump(t, credential)
	}
	return text
}

func must(t testing.TB, l quota.Ledger, c quota.Charge) quota.Decision {
	t.Helper()
	d, err := l.Charge(context.Background(), c)
	if err != nil || !d.Allowed {
		t.Fatalf("charge %s: %+v, %v", c.ID, d, err)
	}
	return d
}

// testRetention: many old entries go in a few steps, and none that counts goes.
func testRetention(t *testing.T, h Harness) {
	ctx, l, cred := context.Background(), h.Open(t), newCredential()
	charge := func(id string) quota.Charge {
		return quota.Charge{Credential: cred, ID: id, Costs: []quota.Cost{{Bucket: "default", Units: 1}}, Limits: []quota.Limit{dayLimit}}
	}
	h.SetNow(t, epoch)
	for i := range 100 {
		must(t, l, charge(fmt.Sprintf("old%d", i)))
	}
	log := func() []quota.Entry {
		list, err := l.Entries(ctx, quota.Query{Credential: cred, Bucket: "default"})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	h.SetNow(t, epoch.Add(hours(40)))
	must(t, l, charge("middle"))
	if n := len(log()); n != 101 {
		t.Errorf("%d entries after 40 hours, want all 101", n)
	}
	h.SetNow(t, epoch.Add(hours(80)))
	must(t, l, charge("new1"))
	if n := len(log()); n < 102-64 {
		t.Errorf("%d entries after one charge: more than 64 were trimmed in one step", n)
	}
	must(t, l, charge("new2"))
	must(t, l, charge("new3"))
	list := log()
	if len(list) != 4 || list[0].ID != "middle" || list[0].Total != 101 || list[3].Total != 104 {
		t.Errorf("the log is %+v, want middle, new1, new2, new3 with totals 101 to 104", list)
	}
}

// testRefusals: what no ledger takes is refused before anything is decided.
func testRefusals(t *testing.T, h Harness) {
	ctx, l, cred := context.Background(), h.Open(t), newCredential()
	h.SetNow(t, epoch)
	one := []quota.Cost{{Bucket: "default", Units: 1}}
	limits := []quota.Limit{dayLimit}
	charges := map[string]quota.Charge{
		"no cost":     {Credential: cred, ID: "a", Limits: limits},
		"zero units":  {Credential: cred, ID: "a", Costs: []quota.Cost{{Bucket: "default"}}, Limits: limits},
		"no id":       {Credential: cred, Costs: one, Limits: limits},
		"odd name":    {Credential: "a:b", ID: "a", Costs: one, Limits: limits},
		"secret key":  {Credential: cred, ID: "a", Key: "AIza" + "SyA-0123456789abcdefghijklmnopqrstu", Costs: one, Limits: limits},
		"reservation": {Credential: cred, ID: "a", Costs: one, Limits: limits, Reservation: "-"},
	}
	for name, c := range charges {
		d, err := l.Charge(ctx, c)
		if errorName(err) != "malformed" || d.Allowed {
			t.Errorf("%s: %+v, %v; want malformed", name, d, err)
		}
	}
	if _, err := l.Release(ctx, cred, "no-dot"); errorName(err) != "malformed" {
		t.Errorf("release of a malformed reservation: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, memory := l.(*Model); !memory {
		c := quota.Charge{Credential: cred, ID: "a", Costs: one, Limits: limits}
		if d, err := l.Charge(gone, c); err == nil || d.Allowed {
			t.Errorf("charge in a cancelled context: %+v, %v", d, err)
		}
	}
	list, err := l.Entries(ctx, quota.Query{Credential: cred, Bucket: "default"})
	if err != nil || len(list) != 0 {
		t.Errorf("the log is %v, %v; want it empty", list, err)
	}
}
