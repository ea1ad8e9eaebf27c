// Package limit decides whether a client of our own API may proceed.
//
// A Policy allows a number of units per window for each key: an address, an API key, or all
// clients together. A request asks all its policies in one step (Memory.Take); either all of them
// are charged or none is.
//
// There are three algorithms. With 50 units per minute, all of them charged at 11:59:59:
//
//	12:00:01  log      denied until 12:00:59: what was taken a minute ago leaves, and no sooner
//	12:00:01  counter  denied until 12:00:01.2: 50 units fade evenly over the minute
//	12:00:01  fixed    allowed, up to 50 units more: 100 within two seconds
//
// Only the log is exact: no window of any length admits more than the limit.
package limit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Algorithm is a way to count units.
type Algorithm string

// Log keeps the time and the units of each charge, and is exact. Counter keeps two numbers per key
// and assumes that the previous window's charges were spread evenly. Fixed keeps one number per
// window of the clock; it exists for comparison.
const (
	Log     Algorithm = "log"
	Counter Algorithm = "counter"
	Fixed   Algorithm = "fixed"
)

// Bounds of a policy. Within them no computation here overflows.
const (
	MaxUnits  = 1 << 32
	MaxWindow = 366 * 24 * time.Hour
	MaxShards = 64
)

// Policy is a named limit: units per window for each key.
type Policy struct {
	Name      string
	Units     int64
	Window    time.Duration // whole microseconds
	Algorithm Algorithm
	// CountDenied charges denied calls too. A client that never stops calling stays denied until it
	// has been quiet for a window (two with Counter).
	CountDenied bool
	// Shards splits each key into parts, each with its share of the units, so that a hot key does
	// not load a single node of a cluster (see TakeParts). 0 and 1 mean one part.
	Shards int
}

// Check reports all problems of a policy.
func (p Policy) Check() error {
	var problems []error
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(format, args...))
	}
	if p.Units < 1 || p.Units > MaxUnits {
		add("units must be 1 to %d", int64(MaxUnits))
	}
	if p.Window < time.Microsecond || p.Window > MaxWindow || p.Window%time.Microsecond != 0 {
		add("window must be 1µs to %s, in whole microseconds", MaxWindow)
	}
	if p.Shards < 0 || p.Shards > MaxShards || int64(p.Shards) > p.Units {
		add("shards must be 1 to %d, and not more than the units", MaxShards)
	}
	switch p.Algorithm {
	case Log, Fixed:
	case Counter:
		if p.Window%time.Millisecond != 0 {
			add("window of a counter must be whole milliseconds")
		} else if p.Units > p.maxUnits() {
			add("a counter over %s can count %d units", p.Window, p.maxUnits())
		}
	default:
		add("algorithm must be log, counter or fixed, not %q", p.Algorithm)
	}
	return errors.Join(problems...)
}

// Key is the digest of a limited client, so that a store holds no addresses.
type Key [16]byte

// FixedKey returns the key of a public name, such as a route.
func FixedKey(name string) Key { return saltedKey(nil, name) }

// saltLength is the length of a store's salt in bytes.
const saltLength = 32

// saltedKey returns the key of a client, or of a name that a client chose.
func saltedKey(salt []byte, name string) (key Key) {
	sum := sha256.Sum256(append(slices.Clip(salt), name...))
	copy(key[:], sum[:])
	return key
}

// Ask is a request to one policy, with its decision.
type Ask struct {
	Policy *Policy
	Key    Key
	Cost   int64 // units; 0 charges nothing
	Part   int   // number of a split key's part, from 1; 0 for a whole key (see TakeParts)
	Decision
}

// Decision is the answer to an Ask. Durations start at the moment of the decision.
type Decision struct {
	At        int64 // Unix microseconds by the store's clock
	Allowed   bool
	Never     bool  // the cost exceeds the limit
	Remaining int64 // units left after this charge if allowed; of one part if the key is split
	// RetryAfter is how long until this cost would be allowed if nothing else were charged. It is 0
	// if the cost is allowed now or never.
	RetryAfter time.Duration
	// NextAfter is how long until more would fit if nothing else were charged: the cost if it is
	// denied, otherwise one unit more than Remaining. It is 0 if the whole limit is free.
	NextAfter time.Duration
	// ResetAfter is how long until the whole limit would be free if nothing else were charged.
	ResetAfter time.Duration
}

// Store decides and charges: *Memory or *Redis.
type Store interface {
	// Salt returns the salt hashed with client names, so that keys cannot be matched with addresses
	// by trying all addresses. Processes that share charges share a salt.
	Salt(ctx context.Context) ([]byte, error)

	// Take charges all asks, or none if one is denied, and reports which. It fills in each
	// decision. An ask that fits but was not charged because of another gets the decision on a
	// cost of 0. The asks of one call differ in policy or key. After an error, a charge may have
	// been made.
	Take(ctx context.Context, asks []Ask) (allowed bool, err error)
}

// Denial returns the ask that denies the request for longest, or nil if all were allowed.
func Denial(asks []Ask) *Ask {
	var worst *Ask
	for i := range asks {
		a := &asks[i]
		if !a.Allowed &&
			(worst == nil || !worst.Never && (a.Never || a.RetryAfter > worst.RetryAfter)) {
			worst = a
		}
	}
	return worst
}

func (p *Policy) window() int64 { return p.Window.Microseconds() }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
