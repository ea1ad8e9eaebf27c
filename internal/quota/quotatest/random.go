package quotatest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// Each of these tests runs random histories on the ledger and on the model, and compares every
// answer. rapid's flag -rapid.checks sets how many (100 by default); a failure prints its seed and
// the shortest failing history.

func testRandom(t *testing.T, h Harness) {
	random(t, h, kind{steps: 60, windows: storyWindows, units: 1, actions: `ask ask ask ask ask move
		move move jump commit release cancel suspend relimit compare compare learn extend adjust
		adjust crowd crowd`})
}

// testRandomHolds makes many reservations. Many expire together, or in another order than they were
// made.
func testRandomHolds(t *testing.T, h Harness) {
	random(t, h, kind{steps: 40, windows: storyWindows, units: 10, holds: true, actions: `crowd ask
		ask ask commit release extend extend cancel move jump jump relimit compare`})
}

// testRandomLevels makes long logs under restoring windows, whose levels a ledger stores.
func testRandomLevels(t *testing.T, h Harness) {
	random(t, h, kind{steps: 150, windows: []string{"restoring 7/1s", "restoring 1/3s",
		"restoring 1/1m"}, units: 10, actions: `ask ask ask ask ask move cancel adjust learn commit
		compare`})
}

// kind is a kind of random histories.
type kind struct {
	steps   int      // maximum number of steps
	windows []string // with the zone of calendar windows
	units   int64    // factor by which limits are larger
	holds   bool     // most operations are reservations
	actions string   // each repeated in proportion to its frequency; shrinking prefers the first
}

func random(t *testing.T, h Harness, k kind) {
	l := h.Open(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := newStory(t, rt, h, l)
		s.t, s.kind = rt, k
		s.setNow(rapid.SampledFrom(storyStarts).Draw(rt, "start"))
		s.floor, s.dumps = s.clock.Now().Add(-hours(2)), s.rarely("look at the store", 4)
		for _, b := range storyBuckets {
			s.limits[b] = s.drawLimits(b)
		}
		s.play()
	})
}

// story runs one history on a ledger and on the model.
type story struct {
	outer testing.TB // of the whole test, whose clock and store all histories share
	tb    rapid.TB   // reports failures of this history
	t     *rapid.T
	h     Harness
	kind
	ledger     *ledger.Ledger
	model      *model
	clock      Clock
	credential string
	limits     map[string][]quota.Limit // by bucket
	serial     int
	lapses     bool // some holds are charged when they lapse
	dumps      bool // the stored data are compared
	parted     bool // an entry names another limit than the model's, so the story ends

	latest  time.Time // latest time of the clock so far
	floor   time.Time // the clock does not go back past the last lapse
	idle    time.Duration
	ends    []time.Time // expiries and suspensions
	charges []made
	reserve []string // IDs of reservations, including settled ones
	commits []quota.Settle
	known   map[string]time.Time // time at which each reservation was settled, or expires
	proofs  []made               // allowed charges, for checking that no window is over its limit
}

var storyBuckets = []string{"default", "search_list", "videos"}

// storyWindows are long and short, sliding and calendar windows. The clock moves in steps of about
// their lengths.
var storyWindows = []string{
	"24h", "1h", "1m", "5ms", "25h0m0.000001s", "day America/Los_Angeles", "day Asia/Kathmandu",
	"hour UTC", "hour Asia/Kolkata", "minute UTC", "week Europe/Berlin", "month UTC", "anchored 1h",
	"anchored 1m", "restoring 1/1m", "restoring 7/3s", "concurrent",
}

// storyStarts are ordinary moments and hours before a clock change.
var storyStarts = []time.Time{
	epoch, time.Date(2026, 3, 8, 6, 59, 0, 0, time.UTC),
	time.Date(2026, 11, 1, 6, 30, 0, 1000, time.UTC),
}

func newStory(outer testing.TB, tb rapid.TB, h Harness, l *ledger.Ledger) *story {
	s := &story{outer: outer, tb: tb, h: h, ledger: l, credential: newCredential(),
		limits: map[string][]quota.Limit{}, known: map[string]time.Time{}}
	s.model = &model{&s.clock, map[string]*bucket{}, map[string]map[string]quota.Decision{}}
	for _, b := range storyBuckets {
		s.model.buckets[b] = &bucket{name: b, others: map[string]quota.Others{}}
	}
	s.setNow(epoch)
	return s
}

func (s *story) setNow(now time.Time) {
	s.clock.Set(s.outer, now)
	s.h.SetNow(s.outer, now)
	if now.After(s.latest) {
		s.latest = now
	}
}

func (s *story) id() string { s.serial++; return fmt.Sprintf("e%04d", s.serial) }

func window(t rapid.TB, text string) quota.Window {
	word, zone, calendar := strings.Cut(text, " ")
	if calendar = calendar && quota.IsCalendarWord(word); !calendar {
		word, zone = text, ""
	}
	w, err := quota.ParseWindow(word, zone)
	must(t, err)
	return w
}

func (s *story) drawLimits(bucket string) (limits []quota.Limit) {
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(s.windows), 1, 3, rapid.ID[string])
	for _, text := range some.Draw(s.t, "windows of "+bucket) {
		l := quota.Limit{Bucket: bucket, Window: window(s.t, text),
			Units:    rapid.Int64Range(0, 40).Draw(s.t, "units") * s.units,
			Headroom: rapid.SampledFrom([]int64{0, 0, 3, 50}).Draw(s.t, "headroom"),
			Observe:  rapid.IntRange(0, 3).Draw(s.t, "observed only") == 3}
		if l.Headroom == 50 && l.Units > 0 {
			l.Headroom = 1
		}
		if l.Window.IsCalendar() && s.rarely("paced", 3) {
			l.Pace = &quota.Pace{Slack: rapid.Int64Range(0, 9).Draw(s.t, "slack")}
		}
		limits = append(limits, l)
	}
	return limits
}

func (s *story) play() {
	names := strings.Fields(s.actions)
	for range rapid.IntRange(1, s.steps).Draw(s.t, "steps") {
		if s.idle > hours(40) {
			s.touchAll() // a ledger may forget buckets idle for longer than it keeps entries
		}
		actions[rapid.SampledFrom(names).Draw(s.t, "do")](s)
		if s.parted {
			return
		}
	}
	for _, b := range storyBuckets {
		s.compareBucket(b)
	}
	s.comparePicture()
	s.checkWindows()
}

var actions = map[string]func(*story){
	"ask": func(s *story) { s.ask(1) }, "crowd": func(s *story) {
		s.ask(rapid.SampledFrom([]int{2, 3, 4, 5, 7, 12, 16, 64}).Draw(s.t, "calls"))
	},
	"commit": (*story).commit, "extend": (*story).extend, "release": (*story).release,
	"cancel": (*story).cancel, "adjust": (*story).adjust, "learn": (*story).learn,
	"suspend": (*story).suspend, "move": (*story).move, "jump": (*story).jumpTo,
	"relimit": (*story).relimit, "compare": func(s *story) {
		s.compareBucket(s.bucket())
		s.comparePicture()
	},
}

func (s *story) bucket() string { return rapid.SampledFrom(storyBuckets).Draw(s.t, "bucket") }

func (s *story) rarely(what string, oneIn int) bool {
	return rapid.IntRange(1, oneIn).Draw(s.t, what) == oneIn
}

// key returns one of a few keys, or "". Keys contain the date, because ledger and model need not
// forget a key at the same microsecond.
func (s *story) key() string {
	if !rapid.Bool().Draw(s.t, "with key") {
		return ""
	}
	nth := rapid.IntRange(1, 4).Draw(s.t, "key")
	return fmt.Sprintf("%s %d", s.clock.Now().Format(time.DateOnly), nth)
}

// limitsOf returns the limits of the costs; for a charge, without concurrent limits.
func (s *story) limitsOf(costs []quota.Cost, charge bool) (all []quota.Limit) {
	for _, b := range storyBuckets {
		if slices.Contains(names(costs), b) {
			all = append(all, s.limits[b]...)
		}
	}
	return slices.DeleteFunc(all, func(l quota.Limit) bool { return charge && l.Window.Concurrent })
}

// ask makes calls on the same buckets, one after the other, and compares each answer with the
// model's. Calls may have the same idempotency key, draw on the same reservation, or make one of
// the same ID.
func (s *story) ask(size int) {
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(storyBuckets), 1, 3, rapid.ID[string])
	buckets := some.Draw(s.t, "buckets")
	calls := make([]Call, size)
	for i := range calls {
		calls[i] = s.newCall(buckets)
	}
	for _, c := range calls {
		d, _ := s.decide(c)
		s.asked(c, d)
	}
	if size == 1 && calls[0].Reserve == nil {
		s.awaitRetry(calls[0])
	}
}

// decide makes a call on the ledger and on the model.
func (s *story) decide(c Call) (quota.Decision, error) {
	s.tb.Helper()
	return both(s, func(ctx context.Context, c Call) (quota.Decision, error) {
		return c.ask(ctx, s.ledger)
	}, s.model.ask, c)
}

// newCall returns a random charge, draw or reservation in the buckets.
func (s *story) newCall(buckets []string) Call {
	if s.rarely("reserve", 4) || s.holds && !s.rarely("charge", 3) {
		id := quota.ReservationID(s.id(), buckets...)
		if last := fmt.Sprintf("e%04d", s.serial-1); s.rarely("same ID as the last one", 10) {
			id = quota.ReservationID(last, buckets...)
		}
		r := s.newReserve(id)
		return Call{Reserve: &r}
	}
	labels := []quota.Labels{nil, {"region": "BR"}, {"region": "DE", "run": "r:1"}}
	c := quota.Charge{
		Credential: s.credential, ID: s.id(), Key: s.key(), Unlimited: true,
		Manual:  rapid.Bool().Draw(s.t, "manual"),
		Observe: s.rarely("observe", 10), DryRun: s.rarely("dry run", 6),
		Labels: rapid.SampledFrom(labels).Draw(s.t, "labels"),
	}
	if len(s.reserve) > 0 && s.rarely("draw", 2) {
		c.Reservation = rapid.SampledFrom(s.reserve).Draw(s.t, "reservation")
		if bucket := bucketsOf(c.Reservation)[0]; !slices.Contains(buckets, bucket) {
			buckets = append(slices.Clone(buckets), bucket)
		}
	}
	for _, b := range buckets {
		units := rapid.Int64Range(1, 12).Draw(s.t, "cost")
		c.Costs = append(c.Costs, quota.Cost{Bucket: b, Units: units})
	}
	c.Limits = s.limitsOf(c.Costs, true)
	return Call{Charge: c}
}

func (s *story) ttl() time.Duration {
	all := []time.Duration{time.Millisecond, time.Minute, time.Hour, hours(30)}
	return rapid.SampledFrom(all).Draw(s.t, "ttl")
}

func (s *story) newReserve(id string) quota.Reserve {
	r := quota.Reserve{
		Credential: s.credential, ID: id, Key: s.key(), Unlimited: true, Note: "n: ü", TTL: s.ttl(),
		Manual:  rapid.Bool().Draw(s.t, "manual"),
		Observe: s.rarely("observe", 10), Labels: quota.Labels{"job": "h", "run": "r:2"},
		Lapse: rapid.SampledFrom([]quota.Lapse{"", quota.LapseCharge}).Draw(s.t, "lapse"),
	}
	for _, b := range bucketsOf(id) {
		c := quota.Cost{Bucket: b, Units: rapid.Int64Range(1, 12).Draw(s.t, "units")}
		if rapid.Bool().Draw(s.t, "an estimate") {
			c.Most = c.Units + rapid.Int64Range(0, 9).Draw(s.t, "more")
			c.Bounded = rapid.Bool().Draw(s.t, "bounded")
		}
		r.Costs = append(r.Costs, c)
	}
	r.Limits = s.limitsOf(r.Costs, false)
	s.lapses = s.lapses || r.Lapse == quota.LapseCharge
	return r
}

// asked records a decision for later steps and proofs.
func (s *story) asked(c Call, d quota.Decision) {
	switch {
	case !d.Allowed || d.Replayed || c.Charge.DryRun:
	case c.Reserve != nil:
		s.known[c.Reserve.ID] = d.ExpiresAt
		s.reserve = append(s.reserve, c.Reserve.ID)
		s.ends = append(s.ends, d.ExpiresAt)
	default:
		s.charges = append(s.charges, made{c.Charge, d})
		if d.Observed {
			c.Charge.Limits = quota.Enforced(c.Charge.Limits)
		}
		if !d.Observed || !c.Charge.Observe {
			s.proofs = append(s.proofs, made{c.Charge, d})
		}
	}
}

// awaitRetry sometimes checks the RetryAt of a denied charge: one microsecond earlier it is denied,
// at RetryAt it is allowed.
func (s *story) awaitRetry(c Call) {
	c.Charge.DryRun = true
	d, err := s.decide(c)
	if err != nil || d.Allowed || d.RetryAt.IsZero() || c.Charge.Reservation != "" ||
		d.RetryAt.Sub(d.At) > hours(24) || !rapid.Bool().Draw(s.t, "wait for retry") {
		return
	}
	s.forward(d.RetryAt.Add(-time.Microsecond))
	if before, _ := s.decide(c); before.Allowed {
		s.t.Fatalf("allowed one microsecond before its retry at %s", d.RetryAt)
	}
	s.forward(d.RetryAt)
	if then, _ := s.decide(c); !then.Allowed && then.Limit != quota.PaceName {
		s.t.Fatalf("denied at %s, when the charge was to be retried: %+v", d.RetryAt, then)
	}
}

// relimit changes the limits of a bucket, unless the new ones count older entries, which the ledger
// may have deleted.
func (s *story) relimit() {
	if !s.rarely("change limits", 3) {
		return
	}
	b := s.bucket()
	limits := s.drawLimits(b)
	if quota.RetentionFor(limits) <= quota.RetentionFor(s.limits[b]) {
		s.limits[b] = limits
	}
}
