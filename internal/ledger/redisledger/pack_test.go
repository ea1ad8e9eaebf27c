package redisledger

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// An entry is packed where its ID and labels are what they usually are, and written out otherwise.
// Whoever reads it, cancels it or corrects it sees the same either way.
func TestPackedEntries(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	who, run := quota.Labels{"job": "a:b&c"}, quota.Labels{"run": quota.NewRunID(time.Now())}
	both := maps.Clone(who)
	maps.Copy(both, run)
	var charged []quota.Charge
	var made []quota.Decision
	for _, test := range []struct {
		id     string
		units  int64
		labels quota.Labels
		bytes  int // of the member; 0 if it is written out
	}{
		{"", 1, nil, 21}, {"", 2, run, 26},
		{"", 3, who, 0}, {"", 3, who, 25}, // the server is told of the labels first
		{"", math.MaxUint32, both, 30}, {"", math.MaxUint32 + 1, both, 0},
		{"", 5, quota.Labels{"run": "nightly"}, 0}, {"", 5, quota.Labels{"run": "uiloUILO01"}, 0},
		{"job-7", 6, who, 0}, {"6AMFWQ2M53RGJH", 7, nil, 0}, {"6amfwq2m53rgji", 7, nil, 0},
	} {
		c := one("k", test.units)
		c.Limits, c.Labels, c.ID = wide, test.labels, test.id
		if c.ID == "" {
			c.ID = quota.NewID(time.Now())
		}
		d, err := l.Charge(t.Context(), c)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		charged, made = append(charged, c), append(made, d)
		member := l.client.ZRange(t.Context(), logOfK, -1, -1).Val()[0]
		packed := member[0] < '0'
		if packed != (test.bytes > 0) || packed && len(member) != test.bytes {
			t.Errorf("%+v is kept as %q", test, member)
		}
	}
	left := func() (list []string) {
		entries, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, fmt.Sprint(e.ID, e.Units, e.Labels, e.At.UnixMicro()))
		}
		return list
	}
	var want []string
	for i, c := range charged {
		want = append(want, fmt.Sprint(c.ID, c.Costs[0].Units, c.Labels, made[i].At.UnixMicro()))
	}
	if got := left(); !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	spent := func() map[string]int64 {
		sums, err := l.Sums(t.Context(), quota.SumQuery{Credential: "k", Bucket: "default"})
		if err != nil {
			t.Fatal(err)
		}
		by := make(map[string]int64)
		for _, s := range sums {
			by[s.Labels.Encode()] += s.Units
		}
		return by
	}
	was := spent()
	for done := false; !done; { // else only the newest are read
		var err error
		if done, err = l.addUp(t.Context(), "k", "default"); err != nil {
			t.Fatal(err)
		}
	}
	if added := spent(); !maps.Equal(added, was) {
		t.Errorf("%v were added up as %v", was, added)
	}
	for i, c := range charged {
		// One that is named wrongly is not cancelled in its place.
		other := c
		other.ID = quota.NewID(time.Now().Add(time.Hour))
		if err := l.Cancel(t.Context(), other, made[i]); err == nil {
			t.Errorf("%s is cancelled as %s", c.ID, other.ID)
		}
		if err := l.Cancel(t.Context(), c, made[i]); err != nil {
			t.Fatal(c.ID, err)
		}
		line := charged[i].Labels.EncodeWithoutRun()
		if was[line] -= c.Costs[0].Units; was[line] == 0 {
			delete(was, line)
		}
		if now := spent(); !maps.Equal(now, was) {
			t.Errorf("without %s: %v, want %v", c.ID, now, was)
		}
		if got := left(); !slices.Equal(got, want[i+1:]) {
			t.Errorf("without %s: %q", c.ID, got)
		}
		found, err := l.CheckBucket(t.Context(), "k", "default", false)
		if err != nil || len(found) > 0 {
			t.Errorf("without %s: %+v, %v", c.ID, found, err)
		}
	}
}

// A correction lowers packed entries, and raises those that come later.
func TestPackedEntriesAreCorrected(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	var at []time.Time
	var ids, left []string
	for i := range 4 {
		c := one("k", 10*int64(i+1))
		c.Limits, c.Labels = wide, nil
		ids = append(ids, c.ID)
		d, err := l.Charge(t.Context(), c)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		at = append(at, d.At)
	}
	for i, a := range []quota.Adjust{{Units: -25, Until: at[1]}, {Units: 7, Until: at[2]}} {
		a.Credential, a.Bucket, a.ID = "k", "default", quota.NewID(time.Now())
		if _, err := l.Adjust(t.Context(), a); err != nil {
			t.Fatal(i, err)
		}
	}
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: "default"})
	var units, totals []int64
	for _, e := range entries {
		units, totals = append(units, e.Units), append(totals, e.Total)
		left = append(left, e.ID)
	}
	if len(left) != 4 || left[0] != ids[0] || !slices.Equal(left[2:], ids[2:]) {
		t.Errorf("%q became %q", ids, left)
	}
	if fmt.Sprint(units, totals) != "[5 7 30 40] [5 12 42 82]" || err != nil {
		t.Errorf("%v, totals %v, %v", units, totals, err)
	}
	found, err := l.CheckBucket(t.Context(), "k", "default", false)
	if err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// A repair leaves sound packed entries as they are, and writes those again whose totals are wrong.
func TestPackedEntriesAreMended(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	for range 5 {
		c := one("k", 10)
		c.Labels = nil
		allow(t, l, c)
	}
	before := l.client.ZRangeWithScores(t.Context(), logOfK, 0, -1).Val()
	damaged := before[2]
	must(t, l.client.ZRem(t.Context(), logOfK, damaged.Member))
	for _, repair := range []bool{false, true} {
		found, err := l.CheckBucket(t.Context(), "k", "default", repair)
		if err != nil || len(found) == 0 {
			t.Errorf("repair %v: %+v, %v", repair, found, err)
		}
	}
	after := l.client.ZRangeWithScores(t.Context(), logOfK, 0, -1).Val()
	var totals []int64
	for _, z := range after {
		m, err := parseMember(z)
		totals = append(totals, m.total)
		if err != nil || !m.packed {
			t.Errorf("%q: %+v, %v", z.Member, m, err)
		}
	}
	if fmt.Sprint(totals) != "[10 20 30 40]" || !slices.Equal(after[:2], before[:2]) {
		t.Errorf("totals %v; %v", totals, slices.Equal(after[:2], before[:2]))
	}
	allow(t, l, one("k", 60))
}

// Of damage to a packed entry that has to be read, nothing is charged.
func TestDamagedPackedEntry(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	sound := member{total: 10, units: 10, id: "6amfwq2m53rgjh", packed: true}
	more := sound
	more.units = 11
	for name, text := range map[string]string{
		"short": sound.String()[:20], "empty": "", "zero": string(make([]byte, 21)),
		"more units than its total": more.String(), "no total": "\x20" + sound.String()[1:],
	} {
		l.client.FlushAll(t.Context())
		now := float64(time.Now().UnixMicro() - 1000)
		must(t, l.client.ZAdd(t.Context(), logOfK, redis.Z{Score: now, Member: text}))
		before := dump(t, l.client, "k")
		c := one("k", 1)
		if d, err := l.Charge(t.Context(), c); d.Allowed || !says(err, "cannot be read") {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		d := quota.Decision{At: time.UnixMicro(int64(now))}
		if err := l.Cancel(t.Context(), c, d); err == nil {
			t.Errorf("%s: cancelled", name)
		}
		if after := dump(t, l.client, "k"); after != before {
			t.Errorf("%s: %s became %s", name, before, after)
		}
	}
}

// So is the entry of a settlement, in each bucket. Its answer names it when it is asked for again.
func TestSettledEntriesArePacked(t *testing.T) {
	t.Parallel()
	l := open(t, redistest.Start(t, redistest.Options{}).URL())
	r := reserveOf("default+other."+quota.NewID(time.Now()), 5, time.Hour)
	r.Limits = []quota.Limit{day(100), day(100)}
	r.Limits[1].Bucket = "other"
	r.Lapse, r.Labels = quota.LapseCharge, quota.Labels{"job": "a"} // of which the server is told
	r.Costs = append(r.Costs, quota.Cost{Bucket: "other", Units: 2})
	setAside(t, l, r)
	s := quota.Settle{Credential: "k", Reservation: r.ID, ID: quota.NewID(time.Now()),
		Costs: r.Costs, Labels: r.Labels}
	for again := range 2 {
		d, err := l.Settle(t.Context(), s)
		if err != nil || d.Entry != s.ID || d.Replayed != (again > 0) {
			t.Errorf("%d: %+v, %v", again, d, err)
		}
	}
	for _, bucket := range []string{"default", "other"} {
		kept := l.client.ZRange(t.Context(), logKey("k", bucket), 0, -1).Val()
		e, err := l.Entries(t.Context(), quota.Query{Credential: "k", Bucket: bucket})
		if err != nil || len(e) != 1 || e[0].ID != s.ID || e[0].Labels["job"] != "a" ||
			len(kept) != 1 || kept[0][0] > 31 {
			t.Errorf("%s has %q: %+v, %v", bucket, kept, e, err)
		}
	}
}
