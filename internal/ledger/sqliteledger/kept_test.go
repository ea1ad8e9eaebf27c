package sqliteledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// Operations that come as groups answer what they answer one by one, and leave the same rows. What
// is remembered of a bucket is what its row and its entries say, also when a group was undone.
func TestGroupsAreAsOneByOne(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			path := file(t)
			grouped, single := open(t, path), open(t, file(t))
			now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
			clock := func() time.Time { return now } // both ledgers never ask it at once
			grouped.Now, single.Now = clock, clock
			deck := deck{both: [2]*Ledger{grouped, single}, rand: rand.New(rand.NewPCG(seed, 7))}
			at, remembered := now, 0
			for round := range 30 {
				now = at
				ops := make([]op, 1+deck.rand.IntN(12))
				for i := range ops {
					ops[i] = deck.draw()
					at = at.Add(deck.pause())
					ops[i].at, ops[i].clock = at, &now
				}
				got := atOnce(t, grouped, path, ops)
				for i, o := range ops {
					if want := o.ask(single); got[i] != want {
						t.Fatalf("round %d, %d of %d:\n%s\none by one:\n%s",
							round, i+1, len(ops), got[i], want)
					}
				}
				if got, want := dump(t, grouped, "key"), dump(t, single, "key"); got != want {
					t.Fatalf("round %d: rows\n%s\none by one\n%s", round, got, want)
				}
				for _, name := range []string{"a", "b", "c"} {
					remembered += deck.compare(t, name, now)
				}
			}
			if remembered < 30 {
				t.Errorf("a bucket was remembered %d times of 90", remembered)
			}
		})
	}
}

// op is an operation, and the time when it runs.
type op struct {
	keeps bool
	do    func(*session) (any, error)
	at    time.Time
	clock *time.Time
}

// ask answers with what the ledger said, as text.
func (o op) ask(l *Ledger) string {
	var answer any
	err := l.run(context.Background(), work{keeps: o.keeps, do: func(s *session) (err error) {
		*o.clock = o.at
		answer, err = o.do(s)
		return err
	}})
	return fmt.Sprintf("%+v, %v", answer, err)
}

// atOnce has the operations be one group, in order.
func atOnce(t *testing.T, l *Ledger, path string, ops []op) []string {
	unlock := lock(t, path)
	answers := make([]string, len(ops))
	var all sync.WaitGroup
	for i, o := range ops {
		all.Go(func() { answers[i] = o.ask(l) })
		l.queued(i + 1)
	}
	unlock()
	all.Wait()
	return answers
}

// deck makes random operations on three buckets, of which one is short.
type deck struct {
	both [2]*Ledger // where it looks up entries
	rand *rand.Rand
	ids  int
	held []quota.Reserve
	made []quota.Charge
}

var deckLimits = []quota.Limit{
	{Bucket: "a", Units: 120, Window: quota.Sliding(30 * time.Second)},
	{Bucket: "a", Units: 2000, Window: quota.Sliding(24 * time.Hour)},
	{Bucket: "b", Units: 900, Window: quota.Window{Restore: quota.Rate{Units: 5, Per: time.Second}}},
	{Bucket: "c", Units: 1 << 40, Window: quota.Sliding(time.Minute)},
}

// pause is until the next operation: now and then so long that old entries are forgotten, or the
// clock is set back.
func (d *deck) pause() time.Duration {
	switch d.rand.IntN(60) {
	case 0:
		return quota.Retention / 2
	case 1, 2, 3:
		return -time.Second
	}
	return time.Duration(d.rand.IntN(4)) * time.Second // so that windows begin at entries
}

func (d *deck) costs() (list []quota.Cost) {
	for _, name := range []string{"a", "b", "c"} {
		if d.rand.IntN(2) == 0 || name == "c" && list == nil {
			list = append(list, quota.Cost{Bucket: name, Units: 1 + d.rand.Int64N(30)})
		}
	}
	return list
}

func (d *deck) draw() op {
	d.ids++
	id := fmt.Sprintf("e%04d", d.ids)
	switch kind := d.rand.IntN(20); {
	case kind < 6:
		return d.charge(id)
	case kind < 11:
		return d.reserve(id)
	case kind < 15 && len(d.held) > 0:
		r := d.held[max(0, len(d.held)-1-d.rand.IntN(6))]
		c := quota.Settle{Credential: "key", Reservation: r.ID, ID: id, Limits: deckLimits}
		for _, cost := range r.Costs {
			used := d.rand.Int64N(2*cost.Units + 1)
			c.Costs = append(c.Costs, quota.Cost{Bucket: cost.Bucket, Units: used})
		}
		return op{keeps: true, do: func(s *session) (any, error) { return s.settle(c) }}
	case kind < 16 && len(d.held) > 0:
		r := d.held[d.rand.IntN(len(d.held))]
		_, names, _ := quota.ParseReservation(r.ID)
		return op{keeps: true, do: func(s *session) (any, error) {
			return s.release("key", r.ID, names)
		}}
	case kind < 17 && len(d.made) > 0:
		return d.cancel()
	case kind < 19:
		return d.seldom(id)
	}
	a := quota.Adjust{Credential: "key", ID: id, Bucket: "c", Units: 1 - 2*d.rand.Int64N(2),
		Limits: deckLimits[3:], Labels: quota.Labels{"why": "a test"}}
	return op{do: func(s *session) (any, error) { return s.adjust(a) }}
}

// seldom is a lesson, a suspension, or a charge that fails when it is written.
func (d *deck) seldom(id string) op {
	switch d.rand.IntN(3) {
	case 0:
		of := quota.Suspension{Credential: "key", Bucket: "b"}
		if d.rand.IntN(3) == 0 {
			of.Until = time.UnixMicro(1) // over long ago, but another row
		}
		return op{do: func(s *session) (any, error) {
			s.suspend(of)
			return nil, s.broken
		}}
	case 1:
		charge := d.charge(id).do
		return op{keeps: true, do: func(s *session) (any, error) {
			charge(s)
			return nil, errors.New("changed its mind")
		}}
	}
	q := quota.Learn{Credential: "key", Limit: deckLimits[d.rand.IntN(3)],
		Remaining: d.rand.Int64N(100)}
	return op{keeps: true, do: func(s *session) (any, error) { return s.learn(q), s.broken }}
}

func (d *deck) cancel() op {
	c := d.made[len(d.made)-1-d.rand.IntN(min(3, len(d.made)))]
	var at int64
	for _, l := range d.both { // to look may write what has lapsed, so both are looked at
		entries, _ := l.Entries(context.Background(),
			quota.Query{Credential: "key", Bucket: c.Costs[0].Bucket})
		for _, e := range entries {
			if e.ID == c.ID {
				at = e.At.UnixMicro()
			}
		}
	}
	return op{do: func(s *session) (any, error) { return nil, s.cancel(c, at) }}
}

func (d *deck) charge(id string) op {
	c := quota.Charge{Credential: "key", ID: id, Costs: d.costs(), Limits: deckLimits}
	if d.rand.IntN(4) == 0 && len(d.held) > 0 {
		r := d.held[max(0, len(d.held)-1-d.rand.IntN(4))]
		c.Reservation = r.ID
		c.Costs = []quota.Cost{{Bucket: r.Costs[0].Bucket, Units: 1 + d.rand.Int64N(5)}}
	} else if d.made = append(d.made, c); d.rand.IntN(5) == 0 {
		c.Key = fmt.Sprint("once", d.rand.IntN(3))
	}
	return op{keeps: true, do: func(s *session) (any, error) { return s.charge(c) }}
}

func (d *deck) reserve(id string) op {
	r := quota.Reserve{Credential: "key", Costs: d.costs(), Limits: deckLimits,
		TTL: time.Duration(1+d.rand.IntN(30)) * time.Second, Lapse: quota.LapseRelease}
	if d.rand.IntN(2) == 0 {
		r.Lapse = quota.LapseCharge
		for i := range r.Costs {
			r.Costs[i].Most = r.Costs[i].Units + d.rand.Int64N(9)
		}
	}
	if d.rand.IntN(6) == 0 && len(d.held) > 0 { // its name is taken, or free again
		last := d.held[len(d.held)-1]
		r.Costs, r.ID = last.Costs, last.ID
	} else {
		var names []string
		for _, c := range r.Costs {
			names = append(names, c.Bucket)
		}
		r.ID = quota.ReservationID(id, names...)
	}
	d.held = append(d.held, r)
	return op{keeps: true, do: func(s *session) (any, error) { return s.reserve(r) }}
}

// compare compares what the first ledger remembers of a bucket, and answers 1 if it does.
func (d *deck) compare(t *testing.T, name string, now time.Time) int {
	t.Helper()
	b, known := d.both[0].kept.rows[rowName{"key", name}]
	if !known {
		return 0
	}
	err := d.both[0].run(t.Context(), work{keeps: true, do: func(s *session) error {
		read := s.read("key", name)
		type row struct{ id, total, newest, oldest, suspended, retention, held, reset int64 }
		of := func(b bucket) row {
			return row{b.id, b.total, b.newest, b.oldest.Int64, b.suspended, b.retention, b.held,
				b.reset}
		}
		if of(b) != of(*read) {
			t.Errorf("%s is remembered as %+v, and is %+v", name, of(b), of(*read))
		}
		if read.ends.Valid && (!b.ends.Valid || b.ends.Int64 > read.ends.Int64) {
			t.Errorf("%s: the first hold ends at %v, remembered is %v", name, read.ends, b.ends)
		}
		b.s = s
		for range 10 {
			at := now.Add(-time.Duration(d.rand.Int64N(int64(time.Minute)))).UnixMicro()
			if got, want := b.base(at), read.findBase(at); got != want {
				t.Errorf("%s: %d units before %s, want %d", name, got, stamp(at), want)
			}
		}
		return s.broken
	}})
	if err != nil {
		t.Error(err)
	}
	return 1
}

// What others have changed is seen by the next decision, whatever was remembered.
func TestChangesOfOthersAreSeen(t *testing.T) {
	path := file(t)
	l, other := open(t, path), open(t, path)
	mustCharge(t, l, 10, day(100))
	mustCharge(t, other, 80, day(100))
	if d, err := l.Charge(t.Context(), aCharge(11, day(100))); err != nil || d.Allowed {
		t.Errorf("11 of 10 left: %+v, %v", d, err)
	}
	mustReserve(t, other, "held", 5)
	if d, err := l.Charge(t.Context(), aCharge(6, day(100))); err != nil || d.Allowed {
		t.Errorf("6 of 5 left: %+v, %v", d, err)
	}
	mustCharge(t, l, 1, day(100))
	if err := other.Suspend(t.Context(), quota.Suspension{Credential: "key1", Bucket: "default", Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Charge(t.Context(), aCharge(1, day(100))); err != nil || d.Allowed {
		t.Errorf("while it is suspended: %+v, %v", d, err)
	}
	sound(t, l, "key1")
}

// What nobody settles does not stay in memory.
func TestKeptIsBounded(t *testing.T) {
	var k kept
	k.since(1)
	for i := range maxMade + 1 {
		k.made[madeName{1, fmt.Sprint(i)}] = made{}
	}
	if k.since(1); len(k.made) > 0 {
		t.Errorf("%d reservations are kept", len(k.made))
	}
	for i := range maxRows + 1 {
		k.rows[rowName{"key", fmt.Sprint(i)}] = bucket{}
	}
	if k.since(1); len(k.rows) > 0 {
		t.Errorf("%d rows are kept", len(k.rows))
	}
}
