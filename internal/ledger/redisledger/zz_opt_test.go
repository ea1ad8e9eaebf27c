package redisledger

import (
	"context"
	"math/rand/v2"
	"testing"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

func TestZZ(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	l := open(t, s.URL())
	f := &figures{B: &testing.B{}, server: s, l: l, client: l.client}
	f.fill("mixed", 10_000)
	l.Charge(context.Background(), charge("mixed", wide, 1))
	used, _ := l.Usage(context.Background(), "mixed", wide)
	full := used.Buckets[0].Limits[0].Used
	f.charges("warm", wide, 1)
	for range 3 {
		r := f.allowN(true)
		c := f.charges("warm", wide, 1)
		d := f.serverTime("evalsha", func(int) {
			l.Charge(context.Background(), charge("mixed", []quota.Limit{day(full)}, 1+rand.Int64N(100)))
		})
		info := parseInfo(l.client.Info(context.Background(), "commandstats").Val())
		t.Logf("allowN %.2f charge %.2f (%.2f) denial %.2f (%.2f) %s", r, c, c/r, d, d/r, info["cmdstat_zrange"])
	}
}
