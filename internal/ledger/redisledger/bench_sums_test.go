package redisledger

import (
	"context"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// sums reads who spent what from a short log and a long one, and adds the entries of the long one
// up, as for a ledger that is older than its sums.
func (f *figures) sums() {
	read := func(credential string) time.Duration {
		var took []float64
		for range 20 {
			start := time.Now()
			_, err := f.l.Sums(context.Background(), quota.SumQuery{Credential: credential, Bucket: "default"})
			if err != nil {
				panic(err)
			}
			took = append(took, float64(time.Since(start)))
		}
		return time.Duration(median(took))
	}
	start := time.Now()
	f.l.addUp(context.Background(), "logged10000", "default")
	for done := false; !done; {
		done, _ = f.l.addUp(context.Background(), "logged1000000", "default")
	}
	fmt.Fprintf(f.out, "adding up 1,000,000 entries, once\t%.2f s\n", time.Since(start).Seconds())
	short, long := read("logged10000"), read("logged1000000")
	fmt.Fprintf(f.out, "who spent what, 1,000,000 logged, against 10,000\t%.1f ms\t%.1f ×\n",
		long.Seconds()*1e3, float64(long)/float64(short))
}
