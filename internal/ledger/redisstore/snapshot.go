package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"quotabudget/internal/quota"
)

// snapshot is the data that decisions on a credential see, all of one moment, with their changes.
// One goroutine uses it.
type snapshot struct {
	s          *Store
	ctx        context.Context
	credential string
	now        int64
	locked     bool // by another process
	buckets    map[string]*bucket
	order      []*bucket
	answers    map[string]*answer
	searched   bool // logs were read after the snapshot
}

// answer is one kept answer.
type answer struct {
	key    string
	stored string        // its text, "" for none
	now    *quota.Answer // after the decisions, nil for none
	err    error         // the answer is damaged
	dirty  bool
	unread bool // it is forgotten without being read
}

// windowAsk asks for the total before the first entry in a window.
type windowAsk struct {
	bucket        *bucket
	length, start int64 // in µs; a window of the calendar has no length
}

// lapseAsk asks for the entry of a reservation.
type lapseAsk struct {
	bucket      *bucket
	reservation string
}

// snapshot reads what the scopes name. Errors of a single bucket or answer are kept for the
// decisions that need it. Many holds are read after the rest, so that no script occupies the server
// for long: they are of the same moment if they match the state.
func (s *Store) snapshot(ctx context.Context, credential string, scopes []quota.Scope) (
	snap *snapshot, err error) {
	for range 1 + lostRaces {
		if snap, err = s.readSnapshot(ctx, credential, scopes); err != nil {
			return nil, err
		}
		torn := false
		for _, b := range snap.order {
			if b.apart {
				fields, err := s.client.Do(ctx, "HGETALL", holdsKey(credential, b.Name)).Slice()
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
	keys, asks, names := snap.plan(scopes)
	windows := snap.windows(scopes)
	args := []any{s.holder, len(snap.order)}
	kept := make([]keptState, len(snap.order))
	for i, b := range snap.order {
		kept[i] = s.states.get(stateKey(credential, b.Name))
		args = append(args, kept[i].text)
	}
	args = append(args, len(windows))
	for _, w := range windows {
		args = append(args, slices.Index(snap.order, w.bucket)+1, w.length, w.start)
	}
	for _, a := range asks {
		args = append(args, slices.Index(snap.order, a.bucket)+1, a.reservation)
	}
	reply, err := s.run(ctx, "read", keys, args...).Slice()
	if err != nil {
		return nil, explainRead(err)
	}
	if err := snap.parse(reply, kept, windows, asks, names); err != nil {
		return nil, fmt.Errorf("%w: redis: %w", quota.ErrLedgerUnusable, err)
	}
	return snap, nil
}

// plan returns the keys of read.lua, the reservations to look for, and the answers, in their order.
func (snap *snapshot) plan(scopes []quota.Scope) (keys []string, asks []lapseAsk, names []string) {
	keys = []string{lockKey(snap.credential)}
	for _, scope := range scopes {
		for _, name := range scope.Buckets {
			b := snap.buckets[name]
			if b == nil {
				b = newBucket(snap, name)
				snap.buckets[name], snap.order = b, append(snap.order, b)
				keys = append(keys, logKey(snap.credential, name), stateKey(snap.credential, name),
					holdsKey(snap.credential, name), lapsedKey(snap.credential, name))
			}
			if scope.Reservation != "" {
				asks = append(asks, lapseAsk{b, scope.Reservation})
			}
		}
	}
	for _, scope := range scopes {
		if name := scope.Answer; name != "" && snap.answers[name] == nil {
			a := &answer{key: answerKey(snap.credential, name)}
			snap.answers[name], names, keys = a, append(names, name), append(keys, a.key)
		}
	}
	return keys, asks, names
}

// windows returns the windows of the scopes' limits that begin at a known distance from now, or at
// a known time.
func (snap *snapshot) windows(scopes []quota.Scope) (asks []windowAsk) {
	for _, scope := range scopes {
		for _, l := range scope.Limits {
			ask := windowAsk{bucket: snap.buckets[l.Bucket], length: l.Window.Length.Microseconds()}
			switch {
			case l.Window.IsCalendar():
				start, _ := l.Window.Bounds(snap.s.clock())
				ask.start = start.UnixMicro()
			case !l.Window.IsSliding():
				continue
			}
			if ask.bucket != nil && !slices.Contains(asks, ask) {
				asks = append(asks, ask)
			}
		}
	}
	return asks
}

// parse reads the reply of read.lua.
func (snap *snapshot) parse(reply []any, kept []keptState, windows []windowAsk, asks []lapseAsk,
	names []string) error {
	if len(reply) != 6 {
		return fmt.Errorf("read.lua: %d values", len(reply))
	}
	now, isNow := reply[0].(int64)
	locked, isLocked := reply[1].(int64)
	buckets, isBuckets := reply[2].([]any)
	totals, isTotals := reply[3].([]any)
	stamps, isStamps := reply[4].([]any)
	answers, isAnswers := reply[5].([]any)
	if !isNow || !isLocked || !isBuckets || !isTotals || !isStamps || !isAnswers ||
		len(buckets) != len(snap.order) || len(totals) != len(windows) || len(stamps) != len(asks) ||
		len(answers) != len(names) {
		return fmt.Errorf("read.lua: %v", reply)
	}
	snap.now, snap.locked = now, locked != 0
	snap.s.learn(now)
	for i, b := range snap.order {
		of, ok := buckets[i].([]any)
		if !ok || len(of) < 2 {
			return fmt.Errorf("read.lua: %v", buckets[i])
		}
		b.parse(of, kept[i])
	}
	for i, w := range windows {
		of, _ := totals[i].([]any)
		if err := w.bucket.parseWindow(of); err != nil {
			return err
		}
	}
	for i, a := range asks {
		if text, some := stamps[i].(string); some {
			a.bucket.lapsed[a.reservation], _ = strconv.ParseInt(text, 10, 64)
		}
	}
	for i, name := range names {
		a := snap.answers[name]
		if a.stored, _ = answers[i].(string); a.stored != "" {
			a.now, a.err = parseAnswer(name, a.stored)
		}
	}
	return nil
}

// parseWindow reads the start of a window, and its first two entries.
func (b *bucket) parseWindow(of []any) error {
	if len(of) != 2 {
		return fmt.Errorf("read.lua: %v", of)
	}
	text, _ := of[0].(string)
	start, err := strconv.ParseInt(text, 10, 64)
	entries, _ := of[1].([]any)
	if err != nil {
		return fmt.Errorf("read.lua: %v", of)
	}
	t, err := b.totalBefore(start, entries)
	if b.totals = append(b.totals, t); b.damage == nil {
		b.damage = err
	}
	return nil
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
		if at := b.lapsed[scope.Reservation]; at != 0 && scope.Reservation != "" {
			b.Lapsed = &quota.Hold{ID: scope.Reservation, LapsedAt: at}
		}
		a.Buckets = append(a.Buckets, &b.Bucket)
	}
	if of := snap.answers[scope.Answer]; of != nil {
		if of.err != nil {
			return nil, of.err
		}
		a.Answer = of.now
	}
	return a, nil
}
