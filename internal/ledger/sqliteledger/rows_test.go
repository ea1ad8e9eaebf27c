package sqliteledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// What is remembered of a bucket is what its row and its entries say, whatever was done.
func TestKeptIsWhatIsThere(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			l, now := clocked(t)
			p := &player{l: l, dice: rand.New(rand.NewPCG(seed, 1)), now: now}
			remembered := 0
			for range 300 {
				what := p.step(t)
				if p.compare(t) {
					remembered++
				}
				if t.Failed() {
					t.Fatalf("after %s", what)
				}
			}
			if remembered < 100 {
				t.Errorf("the bucket was remembered %d times of 300", remembered)
			}
		})
	}
}

// player does things to a bucket.
type player struct {
	l     *Ledger
	dice  *rand.Rand
	now   *time.Time
	made  int
	holds []string
	last  quota.Charge
	at    quota.Decision
}

func playLimits() []quota.Limit {
	return []quota.Limit{
		{Bucket: "default", Units: 300, Window: quota.Sliding(time.Hour)},
		{Bucket: "default", Units: 2000, Window: quota.Sliding(24 * time.Hour)},
	}
}

func (p *player) step(t *testing.T) (what string) {
	p.made++
	id, units := fmt.Sprintf("id%d", p.made), 1+p.dice.Int64N(20)
	costs := []quota.Cost{{Bucket: "default", Units: units}}
	*p.now = p.now.Add(time.Duration(p.dice.Int64N(int64(time.Minute))))
	ask := quota.Charge{Credential: "key1", ID: id, Costs: costs, Limits: playLimits()}
	ctx := t.Context()
	switch n := p.dice.IntN(20); {
	case n < 7:
		p.at, _ = p.l.Charge(ctx, ask)
		p.last = ask
		return "a charge"
	case n < 11:
		r := quota.Reserve{Credential: "key1", ID: "default." + id, Costs: costs,
			Limits: playLimits(), TTL: time.Duration(1+p.dice.Int64N(20)) * time.Minute}
		if p.dice.IntN(3) > 0 {
			r.Lapse = quota.LapseCharge
		}
		if d, err := p.l.Reserve(ctx, r); err == nil && d.Allowed {
			p.holds = append(p.holds, r.ID)
		}
		return "a reservation"
	case n < 16 && len(p.holds) > 0:
		i := p.dice.IntN(len(p.holds))
		if n == 15 {
			ask.Reservation, ask.Costs[0].Units = p.holds[i], 1
			p.l.Charge(ctx, ask)
			return "a draw"
		}
		p.l.Settle(ctx, quota.Settle{Credential: "key1", Reservation: p.holds[i], ID: id,
			Costs: costs, Limits: playLimits()})
		p.holds = append(p.holds[:i], p.holds[i+1:]...)
		return "a settlement"
	case n == 16 && p.at.Entry != "":
		p.l.Cancel(ctx, p.last, p.at)
		return "a cancellation"
	case n == 17:
		p.l.Suspend(ctx, "key1", "default", p.now.Add(time.Minute))
		return "a suspension"
	case n == 18 && p.made%2 == 0:
		p.l.run(ctx, work{keeps: true, do: func(s *session) error {
			s.charge(ask)
			return errors.New("changed its mind")
		}})
		return "an operation that failed"
	case n == 18:
		p.l.Usage(ctx, "key1", playLimits())
		return "a reading"
	}
	*p.now = p.now.Add(time.Duration(p.dice.Int64N(int64(time.Hour * 2))))
	return "some time"
}

// compare compares, if the bucket is remembered.
func (p *player) compare(t *testing.T) bool {
	b, known := p.l.kept.rows[rowName{"key1", "default"}]
	if !known {
		return false
	}
	err := p.l.run(t.Context(), work{keeps: true, do: func(s *session) error {
		read := s.read("key1", "default")
		type row struct{ id, total, newest, oldest, suspended, retention, held, reset int64 }
		of := func(b bucket) row {
			return row{b.id, b.total, b.newest, b.oldest.Int64, b.suspended, b.retention, b.held,
				b.reset}
		}
		if of(b) != of(*read) {
			t.Errorf("it is remembered as %+v, and is %+v", of(b), of(*read))
		}
		if read.ends.Valid && (!b.ends.Valid || b.ends.Int64 > read.ends.Int64) {
			t.Errorf("the first reservation ends at %v, remembered is %v", read.ends, b.ends)
		}
		b.s = s
		for range 10 {
			at := p.now.Add(-time.Duration(p.dice.Int64N(int64(30 * time.Hour)))).UnixMicro()
			if got, want := b.base(at), read.findBase(at); got != want {
				t.Errorf("%d units before %s, want %d", got, stamp(at), want)
			}
		}
		return s.broken
	}})
	if err != nil {
		t.Error(err)
	}
	return true
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
	if err := other.Suspend(t.Context(), "key1", "default", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Charge(t.Context(), aCharge(1, day(100))); err != nil || d.Allowed {
		t.Errorf("while it is suspended: %+v, %v", d, err)
	}
	sound(t, l, "key1")
}
