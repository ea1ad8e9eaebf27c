package redisledger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

var _ quota.Checker = (*Ledger)(nil)

// BucketsOf finds the buckets by their keys, on the node that holds all of a credential.
func (l *Ledger) BucketsOf(ctx context.Context, credential string) ([]quota.BucketTotal, error) {
	var node redis.Cmdable = l.client
	if cluster, ok := l.client.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, labelsKey(credential))
		if err != nil {
			return nil, explain(err)
		}
		node = master
	}
	found := make(map[string]bool)
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, prefix(credential)+"*", 1000).Result()
		if err != nil {
			return nil, explain(err)
		}
		for _, key := range keys {
			name, kind, _ := strings.Cut(strings.TrimPrefix(key, prefix(credential)), ":")
			if kinds := "log state holds"; quota.CheckBucket(name) == nil &&
				slices.Contains(strings.Fields(kinds), kind) {
				found[name] = true
			}
		}
		if cursor = next; cursor == 0 {
			return l.totals(ctx, credential, slices.Sorted(maps.Keys(found)))
		}
	}
}

// totals reads the states of buckets, a thousand in one round trip. A bucket without a readable
// state counts as used.
func (l *Ledger) totals(ctx context.Context, credential string, names []string) (
	all []quota.BucketTotal, err error) {
	for some := range slices.Chunk(names, 1000) {
		states := make([]*redis.StringCmd, len(some))
		others := make([]*redis.StringCmd, len(some))
		pipe := l.client.Pipeline()
		for i, name := range some {
			states[i] = pipe.HGet(ctx, stateKey(credential, name), stateField)
			others[i] = pipe.HGet(ctx, stateKey(credential, name), othersField)
		}
		pipe.Exec(ctx) // each command has its error
		for i, name := range some {
			if err := states[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
				return nil, explain(err)
			}
			of := quota.BucketTotal{Bucket: name, Units: 1}
			if state := states[i].Val(); len(state) >= 64 {
				number := func(n int) float64 {
					bits := binary.LittleEndian.Uint64([]byte(state[8*n : 8*n+8]))
					return math.Float64frombits(bits)
				}
				of.Units = int64(number(0) + number(7))
				of.Noted = number(2) != 0 || others[i].Err() == nil
			}
			all = append(all, of)
		}
	}
	return all, nil
}

// maxChecks is how often a bucket is read again because it was charged meanwhile, before what was
// found is believed, or given up.
const maxChecks = 20

// CheckBucket holds a bucket against its entries. It is read in steps, so that nobody waits for
// long; what is found is believed if the bucket did not change meanwhile, and mended only while
// that is still so.
func (l *Ledger) CheckBucket(ctx context.Context, credential, bucket string, repair bool) (
	[]quota.Finding, error) {
	found, err := l.checkBooks(ctx, credential, bucket, repair)
	if err != nil {
		return nil, err
	}
	more, err := l.checkTakings(ctx, credential, bucket, repair)
	if err != nil && len(found) == 0 {
		return l.foreign(ctx, credential, bucket, err)
	}
	return append(found, more...), nil
}

func (l *Ledger) checkBooks(ctx context.Context, credential, bucket string, repair bool) (
	[]quota.Finding, error) {
	for range maxChecks {
		c, err := l.check(ctx, credential, bucket)
		if err != nil || len(c.Findings) == 0 {
			return l.foreign(ctx, credential, bucket, err)
		}
		var same bool
		if repair && c.Mends() {
			same, err = l.mendBucket(ctx, c)
		} else {
			same, err = l.unchanged(ctx, c)
		}
		if err != nil {
			return nil, err
		}
		if same {
			return c.In(bucket), nil
		}
	}
	return nil, fmt.Errorf("%w: bucket %s of %s is charged all the time, so it could not be read: "+
		"try again when it is quieter", quota.ErrUnreachable, bucket, credential)
}

// noHold is the member of the list of reservations that is none (bucket.lua).
const noHold = "-"

// stored is a bucket as it was read.
type stored struct {
	credential, bucket string
	now                time.Time
	state              string // the numbers, as they are kept
	hasState           bool
	reservations       map[string]string // by field
	sums               summed
	holds              []redis.Z     // the reservations by expiry
	keeper             bool          // their list has the member that keeps it
	members            []redis.Z     // oldest first
	logTTL, labelsTTL  time.Duration // -1ns for ever, -2ns no key
}

// read reads the state with the newest entries, as one picture, and then the older ones.
func (l *Ledger) read(ctx context.Context, credential, bucket string) (s stored, err error) {
	s = stored{credential: credential, bucket: bucket}
	if s.now, err = l.Time(ctx); err != nil {
		return s, err
	}
	log, pipe := logKey(credential, bucket), l.client.TxPipeline()
	fields := pipe.HGetAll(ctx, stateKey(credential, bucket))
	holds := pipe.ZRangeWithScores(ctx, holdsKey(credential, bucket), 0, -1)
	newest := pipe.ZRevRangeWithScores(ctx, log, 0, readAtOnce-1)
	chunks := pipe.ZRangeWithScores(ctx, sumsKey(credential, bucket), 0, -1)
	logTTL, labelsTTL := pipe.PTTL(ctx, log), pipe.PTTL(ctx, labelsKey(credential))
	if _, err := pipe.Exec(ctx); err != nil {
		return s, explain(err)
	}
	s.logTTL, s.labelsTTL, s.reservations = logTTL.Val(), labelsTTL.Val(), fields.Val()
	s.holds = slices.DeleteFunc(holds.Val(), func(z redis.Z) bool { return z.Member == noHold })
	s.keeper = len(s.holds) < len(holds.Val())
	s.state, s.hasState = s.reservations[stateField]
	if len(chunks.Val()) > 0 { // else they have expired, and are added up again by who needs them
		s.sums = parseSummed(s.reservations[summedField])
		s.sums.add(chunks.Val())
	}
	delete(s.reservations, stateField)
	delete(s.reservations, summedField)
	s.members = newest.Val()
	for page := newest.Val(); len(page) == readAtOnce; {
		start := int64(len(s.members))
		page, err = l.client.ZRevRangeWithScores(ctx, log, start, start+readAtOnce-1).Result()
		if err != nil {
			return s, explain(err)
		}
		// Ranks are counted from the newest: what was added meanwhile moves all others on.
		again := slices.Index(page, s.members[start-1])
		s.members = append(s.members, page[again+1:]...)
	}
	slices.Reverse(s.members)
	return s, nil
}

// unchanged reports whether nothing was written since the bucket was read.
func (l *Ledger) unchanged(ctx context.Context, c *checked) (bool, error) {
	pipe := l.client.TxPipeline()
	state := pipe.HGet(ctx, stateKey(c.credential, c.bucket), stateField)
	entries := pipe.ZCard(ctx, logKey(c.credential, c.bucket))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return false, explain(err)
	}
	return state.Val() == c.state && entries.Val() == int64(len(c.members)), nil
}

// state is the numbers of a state hash (bucket.lua).
type state struct {
	total, newest, suspended, holds, keep, expire, held, charges, extra, next int64

	starts string // what is known of where windows start (start.lua)

	earlier bool // written by an earlier version, which counted less of reservations
	listed  bool // there was a reservation, so there is a list of them
}

// parseState reads them; false when a script would not take them.
func parseState(text string) (s state, ok bool) {
	fields := []*int64{
		&s.total, &s.newest, &s.suspended, &s.holds, new(int64), &s.keep, &s.expire, &s.held,
		&s.charges, &s.extra, &s.next,
	}
	switch n := len(text); {
	case n == 56:
		fields = fields[:7]
	case n >= 64 && n%lenStart == 64%lenStart:
		fields = fields[:8]
	case n < 88 || n%lenStart != 88%lenStart:
		return s, false
	}
	s.starts = text[8*len(fields):]
	for i, into := range fields {
		v := doubleAt(text, i)
		limit, lowest := float64(quota.MaxTotal), 0.0
		if i > 7 && s.holds == 0 { // they mean nothing
			break
		}
		switch i {
		case 2, 6: // a suspension may end at any time
			limit, lowest = math.MaxInt64/2, -math.MaxInt64/2
		case 4:
			lowest = -limit
		}
		if !(v >= lowest && v <= limit) || (i == 0 || i == 7) && v != math.Trunc(v) {
			return s, false
		}
		*into = int64(v)
	}
	s.listed = len(fields) == 11
	s.earlier = len(text) < 64 || !s.listed && s.holds > 0
	return s, true
}

// lenStart is the bytes of what is known of where a window starts.
const lenStart = 48

func doubleAt(text string, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64([]byte(text[8*i : 8*i+8])))
}
