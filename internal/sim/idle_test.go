package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// TestIdle: a tick that is idle would be left out if Admit were called.
func TestIdle(t *testing.T) {
	idle := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := Scenario{Price: []quota.Cost{{Bucket: quota.DefaultBucket, Units: 1 + r.Int64N(3)}},
			Lanes: lanes(t, "@every 30s", "US 4, BR 1, JP 3"), From: begin,
			Reset: quota.Window{Calendar: "day", Zone: time.UTC}, To: begin.AddDate(0, 0, 2)}
		for i := range s.Lanes {
			l := &s.Lanes[i]
			l.Weight, l.Priority, l.Floor = r.Int64N(3), r.Int64N(2), r.Int64N(2)*20
		}
		day := quota.Limit{Bucket: quota.DefaultBucket, Units: 20 + r.Int64N(900), Window: s.Reset}
		sliding := limit(20+r.Int64N(900), time.Duration(6+r.IntN(30))*time.Hour)
		week := day
		week.Window.Calendar = "week"
		s.Limits = [][]quota.Limit{{day}, {sliding}, {day, sliding}, {day, week}}[r.IntN(4)]
		if r.IntN(3) == 0 {
			s.Before = []Standing{{Bucket: quota.DefaultBucket, Reservations: []quota.Reservation{
				{Left: 10, ExpiresAt: begin.Add(5 * time.Hour)}}}}
		}
		idle += lookForIdle(t, r, s.Prepare().Play())
	}
	if idle < 10_000 {
		t.Errorf("%d ticks were idle", idle)
	}
}

func lookForIdle(t *testing.T, r *rand.Rand, p *Play) (idle int) {
	const pause = 20 * int64(time.Minute/time.Microsecond)
	asked, others := new(share.Book), begin.UnixMicro()
	for at, ok := p.Next(); ok; at, ok = p.Next() {
		for ; others < at; others += r.Int64N(2 * pause) {
			p.Charge(others, r.Int64N(12))
		}
		lane := slices.Concat(p.turns[p.turn:], p.queue[:min(1, len(p.queue))])[0].lane()
		if p.book.Idle(lane, at) {
			idle++
			p.shared.move(at)
			if d := asked.CopyOf(&p.book).Admit(lane, at, p.left); d.Run {
				t.Fatalf("idle at %v, but %v", moment(at), d)
			}
		}
		p.Run()
	}
	return idle
}
