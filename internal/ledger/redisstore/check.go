package redisstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	state      string      // the stored state
	oldest     string      // oldest member of the log
	storedSums quota.Tally // by day
	listed     bool        // the bucket is in the list of buckets
	unread     []any       // notes that cannot be read
	result     string
	err        error
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
	newest := c.read()
	c.CheckTime(c.stored.At)
	c.checkEntries(newest)
	if c.bucket.state == "" {
		c.Missing("state")
	} else if !c.listed {
		c.Add("it is not in the list of buckets", "it is listed again", true)
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

// read reads everything but the entries, at one moment, and returns the stamp of the newest entry.
// It checks the digests of the stored state and holds, not of those that this process cached.
func (c *checked) read() (newest string) {
	log := c.key("log")
	var state *redis.StringCmd
	var holds *redis.MapStringStringCmd
	var first, last *redis.StringSliceCmd
	var listed *redis.FloatCmd
	var notes *redis.ZSliceCmd
	days := make(map[int64]*redis.MapStringStringCmd)
	_, err := c.s.client.TxPipelined(c.ctx, func(p redis.Pipeliner) error {
		state = p.Get(c.ctx, c.key("state"))
		holds = p.HGetAll(c.ctx, c.key("holds"))
		first = p.ZRange(c.ctx, log, 0, 0)
		last = redis.NewStringSliceCmd(c.ctx, "ZREVRANGE", log, 0, 0, "WITHSCORES")
		listed = p.ZScore(c.ctx, bucketsKey(c.Credential), c.Name)
		notes = p.ZRangeWithScores(c.ctx, c.key("notes"), 0, -1)
		for at := range c.days() {
			days[at] = p.HGetAll(c.ctx, sumsKey(c.Credential, c.Name, at))
		}
		return p.Process(c.ctx, last)
	})
	if err != nil && !isNil(err) {
		c.err = explain(err)
		return ""
	}
	c.state, c.listed = state.Val(), listed.Err() == nil
	for at, fields := range days {
		for field, value := range fields.Val() {
			start, labels, units, calls, err := parseSum(at, field, value)
			if err != nil {
				start, units = at, 1 // differs from the sums of the entries
			}
			c.storedSums.Add(start, labels, units, calls)
		}
	}
	for _, n := range notes.Val() {
		member, _ := n.Member.(string)
		e, err := parseEntry(member, strconv.FormatInt(int64(n.Score), 10))
		if err == nil {
			_, err = quota.ParseLabels(e.Labels)
		}
		if err != nil {
			c.unread = append(c.unread, member)
		}
	}
	c.checkHolds(holds.Val())
	if len(first.Val()) == 0 || len(last.Val()) != 2 {
		return "-inf"
	}
	c.oldest = first.Val()[0]
	return last.Val()[1]
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

// checkEntries checks the entries up to a stamp, and with repair corrects them. Totals begin with
// that of the first readable entry.
func (c *checked) checkEntries(newest string) {
	log := c.key("log")
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
	if c.err != nil || c.result != done {
		return
	}
	cmds := &commands{credential: c.Credential}
	cmds.guardString(c.key("state"), c.state)
	for at := range c.days() {
		cmds.add("DEL", sumsKey(c.Credential, c.Name, at))
	}
	b.changes = changes{written: true, renewed: true, holds: make(map[string]string)}
	c.Sums.Each(b.sums.Add)
	b.write(cmds)
	b.list(cmds)
	cmds.add("PEXPIRE", holds, b.lasts())
	cmds.addAll("ZREM", c.key("notes"), c.unread)
	cmds.add("PEXPIRE", c.key("log"), b.keeps()+dayMillis) // lost with its last member
	c.result, c.err = c.s.send(c.ctx, cmds, 0)
}
