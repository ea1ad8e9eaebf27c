package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"quotabudget/internal/quota"
)

// snapshot is the data of one moment for decisions on a credential, with their changes. Only one
// goroutine uses it.
type snapshot struct {
	s          *Store
	ctx        context.Context
	credential string
	now        int64
	locked     bool // another process has the lock
	buckets    map[string]*bucket
	order      []*bucket
	answers    map[string]*answer
	searched   bool // logs were read after the snapshot

	wanted  []*answer // answers to read
	windows []window
	lapses  []lapse
}

// answer is one kept answer.
type answer struct {
	name   string
	key    string
	stored string        // stored text; "" for none
	now    *quota.Answer // the answer after the decisions; nil for none
	err    error         // the answer is damaged
	dirty  bool
}

// window asks for the total before the first entry in a window.
type window struct {
	bucket        *bucket
	length, start int64 // in µs; the length of a calendar window is 0
}

// lapse asks for the entry of a reservation.
type lapse struct {
	bucket      *bucket
	reservation string
}

// snapshot reads what the scopes name. It stores errors of a single bucket or answer for the
// decisions that need it. It reads many holds separately, so that no script blocks the server for
// long: they are of the same moment if they match the state.
func (s *Store) snapshot(ctx context.Context, credential string, scopes []quota.Scope) (
	snap *snapshot, err error) {
	for range 1 + lostRaces {
		if snap, err = s.readSnapshot(ctx, credential, scopes); err != nil {
			return nil, err
		}
		torn := false
		for _, b := range snap.order {
			if b.apart {
				fields, err := s.client.Do(ctx, "HGETALL", key(credential, b.Name, "holds")).Slice()
				if err != nil {
					return nil, explainRead(err)
				}
				b.complete(fields)
				torn = torn || b.damage != nil
			}
		}
		if !torn {
			break
		}
	}
	return snap, nil
}

func (s *Store) readSnapshot(ctx context.Context, credential string, scopes []quota.Scope) (
	*snapshot, error) {
	snap := &snapshot{s: s, ctx: ctx, credential: credential, buckets: make(map[string]*bucket),
		answers: make(map[string]*answer)}
	for _, scope := range scopes {
		snap.include(scope)
	}
	keys := []string{lockKey(credential)}
	args := []any{s.holder, len(snap.order), len(snap.wanted), len(snap.windows)}
	for _, b := range snap.order {
		keys, args = append(keys, stateKey(credential, b.Name)), append(args, b.memory.text)
	}
	for _, a := range snap.wanted {
		keys = append(keys, a.key)
	}
	for _, b := range snap.order {
		keys = append(keys, logKey(credential, b.Name), key(credential, b.Name, "holds"))
	}
	for _, w := range snap.windows {
		args = append(args, w.bucket.number, w.length, w.start)
	}
	for _, l := range snap.lapses {
		keys = append(keys, key(credential, l.bucket.Name, "lapsed"))
		args = append(args, l.reservation)
	}
	list, err := s.run(ctx, "read", keys, args...).Slice()
	if err != nil {
		return nil, explainRead(err)
	}
	r := reply{list: list}
	snap.now, snap.locked = r.integer(), r.integer() != 0
	s.learn(snap.now)
	for _, b := range snap.order {
		b.parse(&r)
	}
	for _, w := range snap.windows {
		w.bucket.parseWindow(&r)
	}
	for _, a := range snap.wanted {
		if a.stored = r.text(); a.stored != "" {
			a.now, a.err = parseAnswer(a.name, a.stored)
		}
	}
	for _, l := range snap.lapses {
		l.bucket.lapsed[l.reservation], _ = strconv.ParseInt(r.text(), 10, 64)
	}
	if r.wrong || len(r.list) > 0 {
		return nil, fmt.Errorf("%w: redis: read.lua: %v", quota.ErrLedgerUnusable, list)
	}
	return snap, nil
}

// include adds what a scope names: buckets, with lapses of the reservation, a kept answer, and the
// windows that begin at a known distance from now or at a known time.
func (snap *snapshot) include(scope quota.Scope) {
	for _, name := range scope.Buckets {
		b := snap.buckets[name]
		if b == nil {
			b = newBucket(snap, name)
			snap.buckets[name], snap.order = b, append(snap.order, b)
			b.number = len(snap.order)
		}
		if reservation := scope.Reservation; reservation != "" {
			snap.lapses = append(snap.lapses, lapse{b, reservation})
		}
	}
	if name := scope.Answer; name != "" && snap.answers[name] == nil {
		a := &answer{name: name, key: credentialKey(snap.credential, "answer:"+name)}
		snap.answers[name], snap.wanted = a, append(snap.wanted, a)
	}
	for _, l := range scope.Limits {
		w := window{bucket: snap.buckets[l.Bucket], length: l.Window.Length.Microseconds()}
		if l.Window.IsCalendar() {
			start, _ := l.Window.Bounds(snap.s.clock())
			w.start = start.UnixMicro()
		}
		if w.bucket != nil && (l.Window.IsCalendar() || l.Window.IsSliding()) &&
			!slices.Contains(snap.windows, w) {
			snap.windows = append(snap.windows, w)
		}
	}
}

// account returns what the scope names. Errors: quota.DamagedError.
func (snap *snapshot) account(scope quota.Scope) (*quota.Account, error) {
	a := &quota.Account{Credential: snap.credential, Now: snap.now}
	for _, name := range scope.Buckets {
		b := snap.buckets[name]
		if b.damage != nil {
			return nil, b.damage
		}
		b.Lapsed = nil
		if at := b.lapsed[scope.Reservation]; at != 0 {
			b.Lapsed = &quota.Hold{ID: scope.Reservation, LapsedAt: at}
		}
		a.Buckets = append(a.Buckets, &b.Bucket)
	}
	if reading := snap.answers[scope.Answer]; reading != nil {
		if reading.err != nil {
			return nil, reading.err
		}
		a.Answer = reading.now
	}
	return a, nil
}

// reply reads the values of a script's reply one after the other.
type reply struct {
	list  []any
	wrong bool // a value is of another type, or missing
}

func (r *reply) next() (v any) {
	if r.wrong = r.wrong || len(r.list) == 0; !r.wrong {
		v, r.list = r.list[0], r.list[1:]
	}
	return v
}

func (r *reply) integer() int64 {
	n, is := r.next().(int64)
	r.wrong = r.wrong || !is
	return n
}

// text returns the next value, "" for nil.
func (r *reply) text() string {
	v := r.next()
	s, is := v.(string)
	r.wrong = r.wrong || !is && v != nil
	return s
}

// members returns the next value, a list of members, each followed by its stamp.
func (r *reply) members() []any {
	list, is := r.next().([]any)
	r.wrong = r.wrong || !is
	return list
}
