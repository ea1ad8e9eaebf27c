package redisledger

import (
	"reflect"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// adjustOf is a correction of the bucket "default".
func adjustOf(credential string, units int64) quota.Adjust {
	return quota.Adjust{Credential: credential, ID: "adjusted", Bucket: "default", Units: units,
		Limits: hundred}
}

// A correction keeps the sums as they are kept, whether its entries are in them already or not:
// they are not added up again.
func TestAdjustKeepsTheSums(t *testing.T) {
	s, l := clocked(t)
	l.readNewest = 2
	for range 20 {
		allow(t, l, one("k", 1))
	}
	if done, err := l.addUp(t.Context(), "k", "default"); err != nil || !done {
		t.Fatal(done, err)
	}
	s.SetNow(t, start.Add(time.Hour+time.Microsecond)) // at a stamp after which nobody adds up
	allow(t, l, one("k", 1))
	for _, units := range []int64{-3, 5, -4, 2} {
		a := adjustOf("k", units)
		a.ID = quota.NewID(time.Now())
		if a.Until = start.Add(time.Minute); units == 2 {
			a.Until = start.Add(10 * time.Microsecond) // among those that are added up
		}
		if _, err := l.Adjust(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		kept := parseSummed(l.client.HGet(t.Context(), stateOfK, summedField).Val())
		next, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default",
			Since: fromMicro(kept.upto), First: 1})
		if err != nil || len(next) != 1 || next[0].Total-next[0].Units != kept.total {
			t.Errorf("%+d: the sums end with a total of %d, then comes %+v, %v", units, kept.total,
				next, err)
		}
	}
	sums, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"})
	if want := quota.AddUp(entriesOf(t, l, "k")); err != nil || !reflect.DeepEqual(sums, want) {
		t.Errorf("%+v, %v\nwant %+v", sums, err, want)
	}
}
