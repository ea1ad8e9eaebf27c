package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// Check compares a bucket with its own entries, and with repair writes what follows from these. It
// reads the entries in pages. A repair has the lock of the credential, so that other writers wait,
// and where it changes entries the bucket cannot be used until all of them are written.
func (s *Store) Check(ctx context.Context, credential, of string, repair bool) (
	found []quota.Finding, err error) {
	err = s.race(ctx, credential, func() (string, error) {
		c := &checked{Audit: new(quota.Audit), s: s, ctx: ctx, credential: credential, name: of}
		result, err := c.check()
		found = c.In(of)
		if err != nil || result != done || !repair || len(found) == 0 {
			return result, err
		}
		c = &checked{Audit: new(quota.Audit), s: s, ctx: ctx, credential: credential, name: of,
			repair: true}
		defer c.unlock()
		if !c.lock() {
			return locked, nil
		}
		result, err = c.check()
		found = c.In(of)
		return result, err
	})
	var foreign *foreignError
	if errors.As(err, &foreign) {
		var f quota.Findings
		f.Add(fmt.Sprintf("the key %s is not a %s: something else wrote it", foreign.key,
			foreign.kind), "none: rename or delete that key, then check again", false)
		return f.In(of), nil
	}
	return found, err
}

// checked is a bucket under check, with the findings.
type checked struct {
	*quota.Audit
	s                *Store
	ctx              context.Context
	credential, name string
	repair           bool

	*bucket
	state string // as stored now
	kept  quota.Tally
}

const (
	// underRepair begins the state of a bucket while a repair writes its entries: no decision
	// accepts such a state.
	underRepair = "repair "
	repairTime  = 10 * time.Second // of the lock, for one page
)

func (c *checked) lock() bool {
	taken, err := c.s.client.SetNX(c.ctx, lockKey(c.credential), c.s.holder, repairTime).Result()
	return taken && err == nil
}

func (c *checked) unlock() { _, _ = c.s.send(c.ctx, newCommands(c.credential), 0) }

// check returns done, or that the bucket was changed meanwhile.
func (c *checked) check() (result string, err error) {
	snap, err := c.s.snapshot(c.ctx, c.credential, []quota.Scope{{Buckets: []string{c.name}}})
	if err != nil {
		return "", err
	}
	c.bucket = snap.order[0]
	c.state = c.bucket.state
	c.Audit = quota.NewAudit(&c.bucket.Bucket, snap.now, c.firstDay())
	if err := c.checkHolds(); err != nil {
		return "", err
	}
	c.CheckTime(c.stored.At)
	if result, err = c.checkEntries(); err != nil || result != done {
		return result, err
	}
	if err := c.checkState(); err != nil {
		return "", err
	}
	c.End(c.kept)
	if err := c.checkNotes(); err != nil {
		return "", err
	}
	if !c.repair || len(c.Findings) == 0 {
		return done, nil
	}
	return c.finish()
}

// checkHolds reads the stored holds, because the snapshot may contain those this process wrote, and
// checks that they and the state are what was written.
func (c *checked) checkHolds() error {
	stored, err := c.s.client.HGetAll(c.ctx, holdsKey(c.credential, c.name)).Result()
	if err != nil {
		return explain(err)
	}
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
	return nil
}

// checkEntries reads the entries, and with the last of them the sums, in one step. Totals begin
// with that of the first readable entry.
func (c *checked) checkEntries() (result string, err error) {
	for after := "-inf"; ; {
		page, err := c.s.client.Do(c.ctx, "ZRANGEBYSCORE", logKey(c.credential, c.name), after, "+inf",
			"WITHSCORES", "LIMIT", 0, maxPage).Slice()
		if err != nil {
			return "", explain(err)
		}
		if len(page) < 2*maxPage {
			if page, err = c.readEnd(after); err != nil || page == nil {
				return raced, err
			}
			break
		}
		if result, err := c.checkPage(page); err != nil || result != done {
			return result, err
		}
		stamp, _ := page[len(page)-1].(string)
		after = "(" + stamp
	}
	return done, nil
}

// readEnd checks the entries after a stamp, reads the sums of all at the same moment, and returns
// nil if the state is another than before.
func (c *checked) readEnd(after string) (page []any, err error) {
	var days []*redis.MapStringStringCmd
	var starts []int64
	var state *redis.StringCmd
	var end *redis.Cmd
	_, err = c.s.client.TxPipelined(c.ctx, func(p redis.Pipeliner) error {
		state = p.Get(c.ctx, stateKey(c.credential, c.name))
		end = p.Do(c.ctx, "ZRANGEBYSCORE", logKey(c.credential, c.name), after, "+inf", "WITHSCORES")
		for at := c.firstDay(); at <= max(c.snap.now, c.stored.At)+day; at += day {
			starts = append(starts, at)
			days = append(days, p.HGetAll(c.ctx, sumsKey(c.credential, c.name, at)))
		}
		return nil
	})
	if err != nil && !isNil(err) {
		return nil, explain(err)
	}
	if state.Val() != c.state {
		return nil, nil
	}
	for i, of := range days {
		for field, value := range of.Val() {
			at, what, labels, n, err := parseSum(starts[i], field, value)
			if err != nil {
				at, n = starts[i], 1
			}
			c.kept.Add(at, labels, n, calls(what, n))
		}
	}
	page, err = end.Slice()
	if err != nil {
		return nil, explain(err)
	}
	if _, err = c.checkPage(page); page == nil {
		page = []any{}
	}
	return page, err
}

// repairPage is how many entries or holds one script of a repair writes.
const repairPage = 250

// writeHolds writes the holds if the check changed them.
func (c *checked) writeHolds() (result string, err error) {
	if !c.ChangedHolds {
		return done, nil
	}
	key := holdsKey(c.credential, c.name)
	cmds := c.repairing()
	cmds.add("DEL", key)
	result, err = c.s.send(c.ctx, cmds, 0)
	for some := range slices.Chunk(c.Holds, repairPage) {
		if err != nil || result != done {
			break
		}
		cmds = c.repairing()
		for _, h := range some {
			cmds.add("HSET", key, h.ID, holdText(h))
		}
		result, err = c.s.send(c.ctx, cmds, 0)
	}
	return result, err
}

// repairing returns commands that mark the bucket as under repair, and renew the lock.
func (c *checked) repairing() *commands {
	cmds, key := newCommands(c.credential), stateKey(c.credential, c.name)
	cmds.guard("string", key, c.state)
	c.state = underRepair + strings.TrimPrefix(c.state, underRepair)
	cmds.add("SET", key, c.state)
	cmds.add("SET", lockKey(c.credential), c.s.holder, "PX", repairTime.Milliseconds())
	return cmds
}

// checkPage checks entries, and with repair writes what is wrong with them.
func (c *checked) checkPage(page []any) (result string, err error) {
	log := logKey(c.credential, c.name)
	for some := range slices.Chunk(page, 2*repairPage) {
		var changes [][2]any // a member, and the entry that takes its place
		for pair := range slices.Chunk(some, 2) {
			e, err := entryOf(pair)
			if err != nil {
				e = quota.LogEntry{}
			}
			now, is := c.CheckEntry(e, fmt.Sprintf("%v: %.64q", pair[1], pair[0]))
			if is && c.repair && now != e {
				changes = append(changes, [2]any{pair[0], now})
			}
		}
		if len(changes) == 0 {
			continue
		}
		cmds := c.repairing()
		for _, change := range changes {
			now := change[1].(quota.LogEntry)
			cmds.add("ZREM", log, change[0])
			cmds.add("ZADD", log, now.At, memberText(now))
		}
		if result, err := c.s.send(c.ctx, cmds, 0); err != nil || result != done {
			return result, err
		}
	}
	return done, nil
}

// firstDay returns the first day of which sums are kept. An earlier entry is in no window.
func (c *checked) firstDay() int64 { return dayOf(c.snap.now - 2*(1000*c.keeps()+2*day)) }

// checkState reports a bucket without a state, or missing from the list of buckets.
func (c *checked) checkState() error {
	if c.bucket.state == "" {
		c.Missing("state")
		return nil
	}
	err := c.s.client.ZScore(c.ctx, bucketsKey(c.credential), c.name).Err()
	if !isNil(err) {
		return explain(err)
	}
	c.Add("it is not in the list of buckets", "it is listed again", true)
	return nil
}

func (c *checked) checkNotes() error {
	notes, err := c.s.client.ZRangeWithScores(c.ctx, notesKey(c.credential, c.name), 0, -1).Result()
	if err != nil {
		return explain(err)
	}
	unread := newCommands(c.credential)
	for _, n := range notes {
		member, _ := n.Member.(string)
		e, err := parseEntry(member, strconv.FormatInt(int64(n.Score), 10))
		if err == nil {
			_, err = quota.ParseLabels(e.Labels)
		}
		if err != nil {
			unread.add("ZREM", notesKey(c.credential, c.name), member)
		}
	}
	c.Unread(len(unread.list) / 4)
	if c.repair && len(unread.list) > 0 {
		_, err = c.s.send(c.ctx, unread, 0)
	}
	return err
}

// finish writes the repaired holds, sums and state.
func (c *checked) finish() (result string, err error) {
	b := c.bucket
	if result, err := c.writeHolds(); err != nil || result != done {
		return result, err
	}
	cmds := newCommands(c.credential)
	cmds.guard("string", stateKey(c.credential, c.name), c.state)
	for at := c.firstDay(); at <= max(c.snap.now, c.stored.At)+day; at += day {
		cmds.add("DEL", sumsKey(c.credential, c.name, at))
	}
	b.changes = changes{written: true, renewed: true, holds: make(map[string]string)}
	c.Sums.Each(b.sums.Add)
	b.write(cmds)
	b.list(cmds)
	cmds.add("PEXPIRE", logKey(c.credential, c.name), b.keeps()+dayMillis) // lost with its last member
	return c.s.send(c.ctx, cmds, 0)
}
