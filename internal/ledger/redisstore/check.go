package redisstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// Check compares a bucket with its own entries, which it reads in pages. A repair writes what
// follows from the entries. It holds the credential's lock, so that other writers wait. If it
// changes entries, the bucket cannot be used until all of them are written.
func (s *Store) Check(ctx context.Context, credential, bucket string, repair bool) (
	findings []quota.Finding, err error) {
	err = s.race(ctx, credential, func() (string, error) {
		c := s.check(ctx, credential, bucket, false)
		findings = c.In(bucket)
		if c.err != nil || c.result != done || !repair || len(findings) == 0 {
			return c.result, c.err
		}
		taken, err := s.client.SetNX(ctx, lockKey(credential), s.holder, repairTime).Result()
		if !taken || err != nil {
			return locked, nil
		}
		defer func() { _, _ = s.send(ctx, &commands{credential: credential}, 0) }() // unlocks
		c = s.check(ctx, credential, bucket, true)
		findings = c.In(bucket)
		return c.result, c.err
	})
	if foreign, is := errors.AsType[*foreignError](err); is {
		var f quota.Findings
		f.Add(fmt.Sprintf("the key %s is not a %s: something else wrote it", foreign.key,
			foreign.kind), "none: rename or delete that key, then check again", false)
		return f.In(bucket), nil
	}
	return findings, err
}

// checked is a bucket under check, with the findings. Its methods do nothing after an error, or a
// result other than done.
type checked struct {
	*quota.Audit
	s      *Store
	ctx    context.Context
	repair bool

	*bucket
	state      string  // the stored state
	oldest     string  // oldest member of the log
	newest     float64 // stamp of the newest entry
	storedSums quota.Tally
	sumsRead   map[sumName]float64 // stamp of the newest entry when each was read
	unreadSums []sumName
	listed     bool  // the bucket is in the list of buckets
	unread     []any // notes that cannot be read
	result     string
	err        error
}

// sumName names a stored sum.
type sumName struct {
	day   int64
	field string
}

const (
	// underRepair begins the state of a bucket while a repair writes its entries. No decision
	// accepts such a state.
	underRepair = "repair "
	repairTime  = 10 * time.Second // expiry of the lock, renewed with each page
)

// check checks a bucket. With repair, it also corrects what it finds.
func (s *Store) check(ctx context.Context, credential, bucket string, repair bool) *checked {
	snap, err := s.snapshot(ctx, credential, []quota.Scope{{Buckets: []string{bucket}}})
	c := &checked{Audit: new(quota.Audit), s: s, ctx: ctx, repair: repair, result: done, err: err}
	if err != nil {
		return c
	}
	c.bucket = snap.order[0]
	c.Audit = quota.NewAudit(&c.bucket.Bucket, snap.now, c.firstDay())
	c.read()
	began := c.newest
	c.readSums()
	c.readNotes()
	c.CheckTime(c.stored.At)
	c.checkEntries(began)
	if c.bucket.state == "" {
		c.Missing("state")
	} else if !c.listed {
		c.Add("it is not in the list of buckets", "it is listed again", true)
	}
	if n := len(c.unreadSums); n > 0 {
		c.Add(fmt.Sprintf("%d of its sums by label cannot be read", n), "they are deleted", true)
	}
	c.End(c.storedSums)
	c.Unread(len(c.unread))
	if c.repair && len(c.Findings) > 0 {
		c.finish()
	} else if c.err == nil && c.result == done {
		cmds := &commands{credential: c.Credential}
		cmds.guardString(c.key("state"), c.state)
		cmds.guardEnd("ZRANGE", c.key("log"), c.oldest) // trimming changes the sums
		c.result, c.err = c.s.send(c.ctx, cmds, 0)
	}
	return c
}

// read reads everything but entries, sums and notes, at one moment. It checks the digests of the
// stored state and holds, not of those that this process cached.
func (c *checked) read() {
	log := c.key("log")
	var state *redis.StringCmd
	var holds *redis.MapStringStringCmd
	var first *redis.StringSliceCmd
	var last *redis.ZSliceCmd
	var listed *redis.FloatCmd
	_, err := c.s.client.TxPipelined(c.ctx, func(p redis.Pipeliner) error {
		state = p.Get(c.ctx, c.key("state"))
		holds = p.HGetAll(c.ctx, c.key("holds"))
		first = p.ZRange(c.ctx, log, 0, 0)
		last = p.ZRevRangeWithScores(c.ctx, log, 0, 0)
		listed = p.ZScore(c.ctx, bucketsKey(c.Credential), c.Name)
		return nil
	})
	if err != nil && !isNil(err) {
		c.err = explain(err)
		return
	}
	c.state, c.listed, c.newest = state.Val(), listed.Err() == nil, stampOf(last)
	c.checkHolds(holds.Val())
	if len(first.Val()) > 0 {
		c.oldest = first.Val()[0]
	}
}

// stampOf returns the stamp of an entry, or -Inf if there is none.
func stampOf(entry *redis.ZSliceCmd) float64 {
	if len(entry.Val()) == 0 {
		return math.Inf(-1)
	}
	return entry.Val()[0].Score
}

// readSums reads the sums in pages, each in one transaction with the stamp of the newest entry.
func (c *checked) readSums() {
	c.sumsRead = make(map[sumName]float64)
	for at := range c.days() {
		for cursor, more := uint64(0), true; more && c.err == nil; more = cursor != 0 {
			var scan *redis.ScanCmd
			var last *redis.ZSliceCmd
			_, err := c.s.client.TxPipelined(c.ctx, func(p redis.Pipeliner) error {
				scan = p.HScan(c.ctx, sumsKey(c.Credential, c.Name, at), cursor, "", maxPage)
				last = p.ZRevRangeWithScores(c.ctx, c.key("log"), 0, 0)
				return nil
			})
			var page []string
			page, cursor = scan.Val()
			c.err, c.newest = explain(err), stampOf(last)
			for pair := range slices.Chunk(page, 2) {
				name := sumName{at, pair[0]}
				if _, twice := c.sumsRead[name]; twice {
					continue
				}
				c.sumsRead[name] = c.newest
				start, labels, units, calls, err := parseSum(at, pair[0], pair[1])
				if err != nil {
					c.unreadSums = append(c.unreadSums, name)
					continue
				}
				c.storedSums.Add(start, labels, units, calls)
			}
		}
	}
}

// addLater adds an entry to the stored sums that were read before it was written.
func (c *checked) addLater(e quota.LogEntry) {
	labels := quota.CutRun(e.Labels)
	isLater := func(what string) bool {
		return float64(e.At) > c.sumsRead[sumName{dayOf(e.At), sumField(e.At, what, labels)}]
	}
	if isLater(sumCalls) {
		c.storedSums.Add(e.At, labels, 1, 1)
	}
	if isLater(sumBeyond) {
		c.storedSums.Add(e.At, labels, e.Units-1, 0)
	}
}

func (c *checked) readNotes() {
	for from, full := int64(0), true; full && c.err == nil; from += maxPage {
		notes, err := c.s.client.ZRangeWithScores(c.ctx, c.key("notes"), from, from+maxPage-1).Result()
		c.err, full = explain(err), len(notes) == maxPage
		for _, n := range notes {
			member, _ := n.Member.(string)
			e, err := parseEntry(member, strconv.FormatInt(int64(n.Score), 10))
			if err == nil {
				_, err = quota.ParseLabels(e.Labels)
			}
			if err != nil {
				c.unread = append(c.unread, member)
			}
		}
	}
}

func (c *checked) checkHolds(stored map[string]string) {
	unread := 0
	c.Holds = nil
	for id, text := range stored {
		h, err := parseHold(id, text)
		if err != nil {
			unread++
			continue
		}
		c.Holds = append(c.Holds, h)
	}
	text := strings.TrimPrefix(c.state, underRepair)
	was, revision, err := parseState(text)
	c.State = was.State
	intact := c.state == "" || err == nil && unread == 0 && stateText(&c.Bucket, revision) == text
	if c.CheckHolds(intact, was.Recorded, unread); intact && text != c.state {
		c.Interrupted()
	}
}

// days yields the days that have sums. No window contains an earlier entry.
func (c *checked) days() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		at := c.firstDay()
		for at <= max(c.snap.now, c.stored.At)+day && yield(at) {
			at += day
		}
	}
}

func (c *checked) firstDay() int64 { return dayOf(c.snap.now - 2*(1000*c.keeps()+2*day)) }

// checkEntries checks all entries and, if c.repair is set, corrects them. Totals continue from the
// first readable entry. As long as the state and the oldest entry do not change, the stored sums
// change only by new entries.
func (c *checked) checkEntries(began float64) {
	log, newest := c.key("log"), strconv.FormatFloat(c.newest, 'f', -1, 64)
	for after, full := "-inf", true; full && c.err == nil && c.result == done; {
		page, err := c.s.client.Do(c.ctx, "ZRANGEBYSCORE", log, after, newest, "WITHSCORES", "LIMIT",
			0, maxPage).Slice()
		if c.err = explain(err); len(page) > 0 {
			after = fmt.Sprint("(", page[len(page)-1])
		}
		full = len(page) == 2*maxPage
		var removals, members []any
		for pair := range slices.Chunk(page, 2) {
			e, err := entryOf(pair)
			if err != nil {
				e = quota.LogEntry{}
			}
			if err == nil && float64(e.At) > began {
				c.addLater(e)
			}
			now, is := c.CheckEntry(e, fmt.Sprintf("%v: %.64q", pair[1], pair[0]))
			if is && c.repair && now != e {
				removals, members = append(removals, pair[0]), append(members, now.At, memberText(now))
			}
		}
		if len(removals) > 0 {
			c.step(func(cmds *commands) {
				cmds.add("ZREM", log, removals...)
				cmds.add("ZADD", log, members...)
			})
		}
	}
}

// step writes a part of a repair. It marks the bucket as under repair, and renews the lock.
func (c *checked) step(write func(*commands)) {
	if c.err != nil || c.result != done {
		return
	}
	cmds, key := &commands{credential: c.Credential}, c.key("state")
	cmds.guardString(key, c.state)
	c.state = underRepair + strings.TrimPrefix(c.state, underRepair)
	cmds.add("SET", key, c.state)
	cmds.add("SET", lockKey(c.Credential), c.s.holder, "PX", repairTime.Milliseconds())
	write(cmds)
	c.result, c.err = c.s.send(c.ctx, cmds, 0)
}

// finish writes the repaired holds, sums and state.
func (c *checked) finish() {
	b, holds := c.bucket, c.key("holds")
	if c.ChangedHolds {
		c.step(func(cmds *commands) { cmds.add("DEL", holds) })
		for some := range slices.Chunk(c.Holds, maxPage) {
			c.step(func(cmds *commands) {
				for _, h := range some {
					cmds.add("HSET", holds, h.ID, holdText(h))
				}
			})
		}
	}
	c.finishSums()
	if c.err != nil || c.result != done {
		return
	}
	cmds := &commands{credential: c.Credential}
	cmds.guardString(c.key("state"), c.state)
	b.changes = changes{written: true, renewed: true, holds: make(map[string]string)}
	b.write(cmds)
	b.list(cmds)
	for at := range c.days() {
		cmds.add("PEXPIRE", sumsKey(c.Credential, c.Name, at), b.sumsLast())
	}
	cmds.add("PEXPIRE", holds, b.lasts())
	cmds.addAll("ZREM", c.key("notes"), c.unread)
	cmds.add("PEXPIRE", c.key("log"), b.keeps()+dayMillis) // lost with its last member
	c.result, c.err = c.s.send(c.ctx, cmds, 0)
}

// finishSums deletes the sums that cannot be read, and writes those that differ from the entries.
func (c *checked) finishSums() {
	for some := range slices.Chunk(c.unreadSums, maxPage) {
		c.step(func(cmds *commands) {
			for _, name := range some {
				cmds.add("HDEL", sumsKey(c.Credential, c.Name, name.day), name.field)
			}
		})
	}
	type sum struct {
		key, field string
		n          int64
	}
	var wrong []sum
	differing := c.Sums.Corrections(c.storedSums)
	differing.Each(func(at int64, labels string, units, calls int64) {
		key := sumsKey(c.Credential, c.Name, at)
		wrong = append(wrong, sum{key, sumField(at, sumCalls, labels), calls},
			sum{key, sumField(at, sumBeyond, labels), units - calls})
	})
	for some := range slices.Chunk(wrong, maxPage) {
		c.step(func(cmds *commands) {
			for _, s := range some {
				if s.n == 0 {
					cmds.add("HDEL", s.key, s.field)
				} else {
					cmds.add("HSET", s.key, s.field, s.n)
				}
			}
		})
	}
}
