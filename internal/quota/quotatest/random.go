package quotatest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/quota"
)

// testRandom tells random histories to the ledger and to the Model and compares every answer.
// rapid's flags say how many (-rapid.checks, 100 by default); a failure prints the shortest history
// that shows it.
func testRandom(t *testing.T, h Harness) {
	l := h.Open(t)
	rapid.Check(t, func(rt *rapid.T) { newStory(t, rt, h, l).play(60, actionNames) })
}

// story is one random history in the making.
type story struct {
	*pair
	t    *rapid.T
	many bool // units, so that many reservations fit

	floor   time.Time // the clock does not go back past what has lapsed
	idle    time.Duration
	ends    []time.Time // expiries and suspensions
	charges []made
	reserve []string // reservations, settled ones included
	commits []quota.Settle
	settled map[string]time.Time // when each reservation was settled
	expires map[string]time.Time // when each of them expires
	proofs  []proof
}

// proof is an allowed charge, for checking that no window is over its limit.
type proof struct {
	at     time.Time
	bucket string
	limits []quota.Limit
}

var storyBuckets = []string{"default", "search_list", "videos"}

// storyWindows are long and short, sliding and calendar; the story's clock moves in steps of about
// their lengths.
var storyWindows = []struct{ text, zone string }{
	{"24h", ""}, {"1h", ""}, {"1m", ""}, {"5ms", ""}, {"25h0m0.000001s", ""},
	{"day", "America/Los_Angeles"}, {"day", "Asia/Kathmandu"}, {"hour", "UTC"},
	{"hour", "Asia/Kolkata"}, {"minute", "UTC"}, {"week", "Europe/Berlin"}, {"month", "UTC"},
	{"anchored 1h", ""}, {"anchored 1m", ""}, {"restoring 1/1m", ""}, {"restoring 7/3s", ""},
	{"concurrent", ""},
}

// storyStarts are ordinary moments and hours before a clock change.
var storyStarts = []time.Time{
	epoch, time.Date(2026, 3, 8, 6, 59, 0, 0, time.UTC),
	time.Date(2026, 11, 1, 6, 30, 0, 1000, time.UTC),
}

func newStory(outer testing.TB, t *rapid.T, h Harness, l quota.Ledger) *story {
	s := &story{pair: newPair(outer, t, h, l), t: t, settled: map[string]time.Time{},
		expires: map[string]time.Time{}}
	s.setNow(rapid.SampledFrom(storyStarts).Draw(t, "start"))
	s.floor = s.clock.Now().Add(-hours(2))
	for _, b := range storyBuckets {
		s.limits[b] = s.drawLimits(b)
	}
	return s
}

func (s *story) drawLimits(bucket string) []quota.Limit {
	indices := rapid.IntRange(0, len(storyWindows)-1)
	windows := rapid.SliceOfNDistinct(indices, 1, 3, rapid.ID[int]).Draw(s.t, "windows of "+bucket)
	limits := make([]quota.Limit, len(windows))
	for i, n := range windows {
		w, err := quota.ParseWindow(storyWindows[n].text, storyWindows[n].zone)
		if err != nil {
			s.t.Fatal(err)
		}
		units := rapid.Int64Range(0, 40).Draw(s.t, "units")
		if s.many {
			units *= 10
		}
		headroom := rapid.SampledFrom([]int64{0, 0, 3, 50}).Draw(s.t, "headroom")
		if headroom == 50 && units > 0 {
			headroom = 1
		}
		limits[i] = quota.Limit{Bucket: bucket, Units: units, Headroom: headroom, Window: w,
			Observe: rapid.IntRange(0, 3).Draw(s.t, "observed only") == 3}
	}
	return limits
}

// play tells a history of so many steps at most.
func (s *story) play(steps int, names []string) {
	for range rapid.IntRange(1, steps).Draw(s.t, "steps") {
		if s.idle > hours(40) {
			s.touchAll() // a ledger may forget what is left alone for longer than it keeps entries
		}
		actions[rapid.SampledFrom(names).Draw(s.t, "do")](s)
		if s.parted {
			return
		}
	}
	s.compareAll()
	s.checkWindows()
}

var actions = map[string]func(*story){
	"charge": (*story).charge, "draw": (*story).draw, "reserve": (*story).reserveSome,
	"commit": (*story).commit, "release": (*story).release, "cancel": (*story).cancel,
	"suspend": (*story).suspend, "move": (*story).move, "jump": (*story).jumpTo,
	"relimit": (*story).relimit, "compare": (*story).compareOne, "burst": (*story).burst,
	"learn": (*story).learn, "extend": (*story).extend, "together": (*story).together,
	"adjust": (*story).adjust,
}

// actionNames has the actions as often as they should come; a shrunk history prefers the first.
var actionNames = strings.Fields(`charge charge charge charge charge move move move jump reserve
	reserve draw draw commit release cancel suspend relimit compare compare learn extend
	adjust adjust together together together`)

func (s *story) bucket() string { return rapid.SampledFrom(storyBuckets).Draw(s.t, "bucket") }

// key is one of a few, none after a day: ledgers need not forget a key at the same microsecond.
func (s *story) key() string {
	if !rapid.Bool().Draw(s.t, "with key") {
		return ""
	}
	nth := rapid.IntRange(1, 4).Draw(s.t, "key")
	return fmt.Sprintf("%s %d", s.clock.Now().Format(time.DateOnly), nth)
}

func (s *story) allLimits(costs []quota.Cost) []quota.Limit {
	var all []quota.Limit
	for _, b := range storyBuckets {
		if slices.ContainsFunc(costs, func(c quota.Cost) bool { return c.Bucket == b }) {
			all = append(all, s.limits[b]...)
		}
	}
	return all
}

func (s *story) newCharge() quota.Charge {
	var costs []quota.Cost
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(storyBuckets), 1, 3, rapid.ID[string])
	for _, b := range some.Draw(s.t, "buckets") {
		units := rapid.Int64Range(1, 12).Draw(s.t, "cost")
		costs = append(costs, quota.Cost{Bucket: b, Units: units})
	}
	labels := []quota.Labels{nil, {"region": "BR"}, {"region": "DE", "run": "r:1"}}
	return quota.Charge{
		Credential: s.credential, ID: s.id(), Key: s.key(),
		Costs: costs, Limits: s.counting(costs), Unlimited: true,
		Manual:  rapid.Bool().Draw(s.t, "manual"),
		Observe: rapid.IntRange(0, 9).Draw(s.t, "observe") == 9,
		DryRun:  rapid.IntRange(0, 5).Draw(s.t, "dry run") == 5,
		Labels:  rapid.SampledFrom(labels).Draw(s.t, "labels"),
	}
}

func (s *story) charge() { s.makeCharge(s.newCharge()) }

func (s *story) draw() {
	if len(s.reserve) == 0 {
		return
	}
	s.makeCharge(s.drawing(s.newCharge()))
}

// drawing is c, drawn on one of the reservations.
func (s *story) drawing(c quota.Charge) quota.Charge {
	c.Reservation = rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")
	_, buckets, _ := quota.ParseReservation(c.Reservation)
	is := func(k quota.Cost) bool { return k.Bucket == buckets[0] }
	if !slices.ContainsFunc(c.Costs, is) {
		units := rapid.Int64Range(1, 4).Draw(s.t, "draw")
		c.Costs = append(c.Costs, quota.Cost{Bucket: buckets[0], Units: units})
		c.Limits = s.counting(c.Costs)
	}
	return c
}

// makeCharge compares the answers, and after a denial sometimes proves RetryAt: denied one
// microsecond before, allowed then.
func (s *story) makeCharge(c quota.Charge) {
	d := s.chargeBoth(c)
	if d.Allowed || d.RetryAt.IsZero() || c.Reservation != "" ||
		!rapid.Bool().Draw(s.t, "wait for retry") {
		return
	}
	if d.RetryAt.Sub(d.At) > hours(24) { // see play
		s.touchAll()
		if d = s.chargeBoth(c); d.Allowed || d.RetryAt.IsZero() {
			return
		}
	}
	coarse := s.h.Coarse && s.lapses
	s.forward(d.RetryAt.Add(-time.Microsecond))
	if before := s.chargeBoth(c); before.Allowed && coarse {
		return
	} else if before.Allowed {
		s.t.Fatalf("allowed one microsecond before its retry at %s", d.RetryAt)
	}
	s.forward(d.RetryAt)
	if then := s.chargeBoth(c); !then.Allowed && !coarse {
		s.t.Fatalf("denied at %s, when the charge was to be retried: %+v", d.RetryAt, then)
	}
}

func (s *story) chargeBoth(c quota.Charge) quota.Decision {
	d := s.compareCharge(c)
	s.charged(c, d)
	return d
}

// charged remembers a charge for later steps and proofs.
func (s *story) charged(c quota.Charge, d quota.Decision) {
	if d.Allowed && !d.Replayed && !c.DryRun {
		s.charges = append(s.charges, made{c, d})
		for _, cost := range c.Costs {
			hold := s.limits[cost.Bucket]
			if d.Observed {
				hold = quota.Enforced(hold)
			}
			if !d.Observed || !c.Observe {
				s.proofs = append(s.proofs, proof{d.At, cost.Bucket, hold})
			}
		}
	}
}

func (s *story) reserveSome() {
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(storyBuckets), 1, 3, rapid.ID[string])
	s.makeReservation(quota.ReservationID(s.id(), some.Draw(s.t, "buckets")...), s.newReserve(), 20)
}

func (s *story) newReserve() quota.Reserve {
	return quota.Reserve{
		Key: s.key(), Note: "n: ü", TTL: s.ttl(), Labels: quota.Labels{"job": "h", "run": "r:2"},
		Manual:  rapid.Bool().Draw(s.t, "manual"),
		Observe: rapid.IntRange(0, 9).Draw(s.t, "observe") == 9,
	}
}

// counting are the limits that a charge may have: not those on what is held at once.
func (s *story) counting(costs []quota.Cost) []quota.Limit {
	held := func(l quota.Limit) bool { return l.Window.Concurrent }
	return slices.DeleteFunc(s.allLimits(costs), held)
}

func (s *story) ttl() time.Duration {
	all := []time.Duration{time.Millisecond, time.Minute, time.Hour, hours(30)}
	return rapid.SampledFrom(all).Draw(s.t, "ttl")
}

// makeReservation reserves at most so many units in each of the ID's buckets.
func (s *story) makeReservation(id string, r quota.Reserve, most int64) {
	r = s.reservation(id, r, most)
	ctx := context.Background()
	want, wantErr := s.model.Reserve(ctx, r)
	got, err := s.ledger.Reserve(ctx, r)
	s.compareDecision(fmt.Sprintf("reserve %+v", r), got, want, err, wantErr)
	s.reserved(r, want)
}

// reserved remembers a reservation for later steps.
func (s *story) reserved(r quota.Reserve, d quota.Decision) {
	if d.Allowed && !d.Replayed {
		s.expires[r.ID] = d.ExpiresAt
		s.reserve = append(s.reserve, r.ID)
		s.ends = append(s.ends, d.ExpiresAt)
	}
}

// reservation fills in r, with at most so many units in each of the ID's buckets.
func (s *story) reservation(id string, r quota.Reserve, most int64) quota.Reserve {
	_, buckets, _ := quota.ParseReservation(id)
	for _, b := range buckets {
		c := quota.Cost{Bucket: b, Units: rapid.Int64Range(1, most).Draw(s.t, "units")}
		if rapid.Bool().Draw(s.t, "an estimate") {
			c.Most = c.Units + rapid.Int64Range(0, 9).Draw(s.t, "more")
			c.Bounded = rapid.Bool().Draw(s.t, "bounded")
		}
		r.Costs = append(r.Costs, c)
	}
	r.ID, r.Credential, r.Limits, r.Unlimited = id, s.credential, s.allLimits(r.Costs), true
	r.Lapse = rapid.SampledFrom([]quota.Lapse{"", quota.LapseCharge}).Draw(s.t, "lapse")
	s.lapses = s.lapses || r.Lapse == quota.LapseCharge
	return r
}

func (s *story) commit() {
	ctx := context.Background()
	var c quota.Settle
	switch {
	case len(s.commits) > 0 && rapid.IntRange(0, 3).Draw(s.t, "again") == 0:
		c = rapid.SampledFrom(s.commits).Draw(s.t, "commit")
	case len(s.reserve) > 0:
		id := rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")
		_, buckets, _ := quota.ParseReservation(id)
		c = quota.Settle{Credential: s.credential, Reservation: id, ID: s.id(),
			Within: rapid.Bool().Draw(s.t, "within"), Once: rapid.Bool().Draw(s.t, "once"),
			Labels: quota.Labels{"job": "s"}}
		for _, b := range buckets {
			units := rapid.Int64Range(quota.AllUnits, 24).Draw(s.t, "units")
			c.Costs = append(c.Costs, quota.Cost{Bucket: b, Units: units})
		}
		if rapid.Bool().Draw(s.t, "what remains") {
			c.Limits = s.allLimits(c.Costs)
		}
		c.Costs = c.Costs[rapid.IntRange(0, len(c.Costs)).Draw(s.t, "not named"):]
	default:
		return
	}
	// A ledger need not forget the answer to a settlement at the same microsecond as another, nor
	// the entry of a lapse.
	old := s.clock.Now().Add(time.Hour * 3).Add(-quota.Retention)
	at, again := s.settled[c.Reservation]
	if again && at.Before(old) || !again && s.expires[c.Reservation].Before(old) {
		return
	}
	want, wantErr := s.model.Settle(ctx, c)
	got, err := s.ledger.Settle(ctx, c)
	s.compareDecision(fmt.Sprintf("settle %+v", c), got, want, err, wantErr)
	if want.Allowed && !want.Replayed {
		s.commits = append(s.commits, c)
		s.settled[c.Reservation] = want.At
	}
}

func (s *story) extend() {
	if len(s.reserve) == 0 {
		return
	}
	e := quota.Extend{Credential: s.credential, TTL: s.ttl(),
		Reservation: rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")}
	want, wantErr := s.model.Extend(context.Background(), e)
	got, err := s.ledger.Extend(context.Background(), e)
	s.compareError(fmt.Sprintf("extend %+v", e), err, wantErr)
	s.same(fmt.Sprintf("extend %+v", e), got, want, nil)
	if err == nil {
		s.expires[e.Reservation] = got
		s.ends = append(s.ends, got)
	}
}

func (s *story) release() {
	if len(s.reserve) == 0 {
		return
	}
	ctx, id := context.Background(), rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")
	want, wantErr := s.model.Release(ctx, s.credential, id)
	got, err := s.ledger.Release(ctx, s.credential, id)
	s.compareError("release "+id, err, wantErr)
	if !maps.Equal(got, want) {
		s.t.Fatalf("release %s: %v, want %v", id, got, want)
	}
}

// learn has the upstream say what is left under one of the limits, and perhaps when it ends.
func (s *story) learn() {
	limits := s.limits[s.bucket()]
	l := quota.Learn{
		Credential: s.credential, Limit: rapid.SampledFrom(limits).Draw(s.t, "limit"),
		Remaining: rapid.Int64Range(-1, 20).Draw(s.t, "remaining"),
	}
	now := s.clock.Now()
	seconds := func(least, most int64, what string) time.Duration {
		return time.Duration(rapid.Int64Range(least, most).Draw(s.t, what)) * time.Second
	}
	if rapid.Bool().Draw(s.t, "asked") {
		l.AskedAt = now.Add(-seconds(-1, 100, "ago"))
	}
	if rapid.Bool().Draw(s.t, "reset") {
		l.Reset = now.Add(seconds(-10, 4000, "ends"))
		s.ends = append(s.ends, l.Reset)
	}
	want, wantErr := s.model.Learn(context.Background(), l)
	got, err := s.ledger.Learn(context.Background(), l)
	s.compareError(fmt.Sprintf("learn %+v", l), err, wantErr)
	s.same(fmt.Sprintf("learn %+v", l), got, want, nil)
}

func (s *story) cancel() {
	if len(s.charges) == 0 {
		return
	}
	c := rapid.SampledFrom(s.charges).Draw(s.t, "charge")
	// When an old entry is forgotten is the ledger's affair: one may be there a while longer than
	// in another.
	latest := s.clock.Now()
	for _, other := range s.charges {
		if other.decision.At.After(latest) {
			latest = other.decision.At
		}
	}
	if latest.Sub(c.decision.At) >= quota.Retention {
		return
	}
	ctx := context.Background()
	want := s.model.Cancel(ctx, c.charge, c.decision)
	s.compareError("cancel "+c.charge.ID, s.ledger.Cancel(ctx, c.charge, c.decision), want)
}

func (s *story) suspend() {
	ctx, b := context.Background(), s.bucket()
	var until time.Time
	if rapid.Bool().Draw(s.t, "close") {
		later := rapid.Int64Range(-1, hours(3).Microseconds()).Draw(s.t, "µs")
		until = s.clock.Now().Add(time.Duration(later) * time.Microsecond)
		s.ends = append(s.ends, until)
	}
	want := s.model.Suspend(ctx, quota.Suspension{Credential: s.credential, Bucket: b, Until: until})
	s.compareError("suspend "+b, s.ledger.Suspend(ctx, quota.Suspension{Credential: s.credential, Bucket: b, Until: until}), want)
}

// relimit changes the limits of a bucket, unless these need entries that may have been trimmed: the
// ledger may do that later than the model.
func (s *story) relimit() {
	if rapid.IntRange(0, 2).Draw(s.t, "change limits") > 0 {
		return
	}
	b := s.bucket()
	limits := s.drawLimits(b)
	if !s.model.hasTrimmed(s.credential, b, quota.RetentionFor(limits)) {
		s.limits[b] = limits
	}
}
