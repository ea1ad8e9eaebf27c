package redisledger

import (
	"context"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

func TestSmoke(t *testing.T) {
	s := redistest.Start(t, redistest.Options{Clock: true})
	ctx := context.Background()
	l, err := Open(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	limits := []quota.Limit{{Bucket: "default", Units: 100, Window: quota.Sliding(24 * time.Hour)}}
	at := func(h int, us int64, units int64) quota.Decision {
		now := day.Add(time.Duration(h)*time.Hour + time.Duration(us)*time.Microsecond)
		s.SetNow(t, now)
		d, err := l.Charge(ctx, quota.Charge{Credential: "k", ID: quota.NewID(now), Costs: []quota.Cost{{Bucket: "default", Units: units}}, Limits: limits, Labels: quota.Labels{"method": "m", "run": "r1"}})
		t.Logf("%v %d -> %+v %v %v", now, units, d, d.RetryAfter(), err)
		return d
	}
	at(6, 0, 60)
	at(9, 0, 30)
	at(10, 0, 30)
	at(10, 0, 10)
	at(30, -1, 60)
	at(30, 0, 70)
	at(30, 0, 60)
	es, err := l.Entries(ctx, quota.Query{Credential: "k", Bucket: "default"})
	t.Log(es, err)
	u, err := l.Usage(ctx, "k", limits)
	t.Log(u, err)
}
