package redisstore

import (
	"maps"
	"slices"

	"quotabudget/internal/quota"
)

// changes collects the changes of a bucket by the decisions on a snapshot.
type changes struct {
	written  bool // anything changed
	renewed  bool // the state must be written
	newState string
	from     int64            // stamp from which added replaces the log; 0 to append
	added    []quota.LogEntry // new entries
	sums     quota.Tally
	holds    map[string]string // by reservation, "" for a removed one
	put      map[string]int64  // stamps of reservations that have become entries, 0 for settled ones
	notes    []quota.LogEntry
	keep     int64 // previous State.Keep, if entries are kept longer now
}

// apply applies a change of the buckets in scope to the snapshot.
func (snap *snapshot) apply(scope quota.Scope, ch quota.Change) error {
	for i, change := range ch.Buckets {
		if err := snap.buckets[scope.Buckets[i]].apply(change); err != nil {
			return err
		}
	}
	if a := snap.answers[scope.Answer]; ch.Keep != nil || ch.Forget != "" {
		a.now, a.dirty = ch.Keep, true
	}
	return nil
}

func (b *bucket) apply(ch quota.BucketChange) error {
	if ch.From != 0 {
		removals, err := b.Since(ch.From-1, quota.MaxRewritten+2)
		if err != nil {
			return err
		}
		b.count(removals, -1)
		b.from = ch.From
	}
	added := slices.Concat(ch.Entries, ch.Append)
	b.count(added, 1)
	b.added = append(b.added, added...)
	if b.holds == nil {
		b.holds, b.put = make(map[string]string), make(map[string]int64)
	}
	for _, id := range ch.Drop {
		b.holds[id] = ""
	}
	if ch.Settled != 0 {
		b.put[b.Lapsed.ID], b.lapsed[b.Lapsed.ID] = 0, 0
	}
	for _, h := range ch.Put {
		if h.LapsedAt > 0 {
			b.holds[h.ID], b.put[h.ID], b.lapsed[h.ID] = "", h.LapsedAt, h.LapsedAt
		} else {
			b.holds[h.ID] = holdText(h)
		}
	}
	if ch.Note != nil {
		b.notes = append(b.notes, *ch.Note)
	}
	if s := ch.State; s != nil && s.Keep > b.State.Keep && b.keep == 0 {
		b.keep = b.State.Keep
	}
	b.written = true
	b.renewed = b.renewed || b.state == "" || b.from != 0 || ch.State != nil || ch.Settled != 0 ||
		len(ch.Drop)+len(ch.Put) > 0
	b.Apply(ch)
	return nil
}

// count adds entries to the sums, or subtracts them if times is -1.
func (b *bucket) count(entries []quota.LogEntry, times int64) {
	for _, e := range entries {
		b.sums.Add(e.At, quota.CutRun(e.Labels), times*e.Units, times)
	}
}

// dayMillis is how much longer a log lasts than its newest entry is needed, and the state than the
// log, in ms.
const dayMillis = day / 1000

// keeps returns how long entries are kept, in ms.
func (b *bucket) keeps() int64 {
	return max(b.State.Keep, quota.Retention.Microseconds()) / 1000
}

// lasts returns how long the state and the holds must be kept, in ms: a day longer than the log,
// any hold, and every time in the state.
func (b *bucket) lasts() int64 {
	until := max(b.snap.now, b.State.SuspendedUntil, b.State.ResetAt, b.State.Floor)
	for _, h := range b.Holds {
		until = max(until, h.Expires)
	}
	return (until-b.snap.now)/1000 + b.keeps() + 2*dayMillis
}

// write adds the commands that write the changes of the bucket. If any of them needs memory, the
// first does.
func (b *bucket) write(c *commands) {
	log, state := b.key("log"), b.key("state")
	keeps := b.keeps() + dayMillis
	// The first entry of an hour, and a change of older entries, renew the expiry of the log.
	hourly := len(b.added) > 0 && (b.from != 0 || b.keep != 0 ||
		b.stored.At/(day/24) != b.added[0].At/(day/24))
	b.writeSums(c, hourly)
	removals := b.putHolds(c)
	if b.renewed {
		b.newState = stateText(&b.Bucket, newRevision())
		c.add("SET", state, b.newState, "PX", b.lasts())
	}
	c.addAll("HDEL", b.key("holds"), removals)
	if b.state == "" || hourly {
		b.list(c)
	}
	for _, n := range b.notes {
		c.add("ZADD", b.key("notes"), n.At, memberText(n))
		c.add("PEXPIRE", b.key("notes"), keeps)
	}
	if b.from != 0 {
		c.add("ZREMRANGEBYSCORE", log, b.from, "+inf")
	}
	var members []any
	for _, e := range b.added {
		members = append(members, e.At, memberText(e))
	}
	c.addAll("ZADD", log, members)
	if hourly {
		c.add("PEXPIRE", log, keeps)
		if !b.renewed {
			c.add("PEXPIRE", state, b.lasts())
		}
	}
}

// list adds the commands that add the bucket to the list of buckets. The list outlasts the bucket
// by a year, because other buckets in it may last longer.
func (b *bucket) list(c *commands) {
	lasts := b.lasts()
	c.add("ZADD", bucketsKey(b.Credential), b.snap.now/1000+lasts, b.Name)
	c.add("PEXPIRE", bucketsKey(b.Credential), lasts+quota.MaxWindow.Milliseconds())
}

// writeSums adds the commands that change the sums and renew their expiry. Sums outlive their
// entries.
func (b *bucket) writeSums(c *commands, hourly bool) {
	days := make(map[string]bool)
	b.sums.Each(func(at int64, labels string, units, calls int64) {
		key := sumsKey(b.Credential, b.Name, at)
		for what, n := range map[string]int64{sumCalls: calls, sumBeyond: units - calls} {
			if n != 0 {
				days[key] = true
				c.add("HINCRBY", key, sumField(at, what, labels), n)
			}
		}
	})
	if len(b.added) > 0 && !hourly {
		delete(days, sumsKey(b.Credential, b.Name, b.stored.At))
	}
	if b.keep != 0 { // sums of earlier entries last longer now
		for at := b.snap.now - 2*(b.keep+2*day); at < b.snap.now; at += day {
			days[sumsKey(b.Credential, b.Name, at)] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(days)) {
		c.add("PEXPIRE", key, b.sumsLast())
	}
}

// sumsLast returns the time until sums expire, in ms.
func (b *bucket) sumsLast() int64 { return 2 * (b.keeps() + 2*dayMillis) }

// putHolds adds the commands that add and change holds, and returns the reservations to remove.
func (b *bucket) putHolds(c *commands) (removals []any) {
	holds, lapsed := b.key("holds"), b.key("lapsed")
	var put, stamps, settled []any
	for id, text := range b.holds {
		if text != "" {
			put = append(put, id, text)
		} else {
			removals = append(removals, id)
		}
	}
	for id, at := range b.put {
		if at != 0 {
			stamps = append(stamps, at, id)
		} else {
			settled = append(settled, id)
		}
	}
	c.addAll("HSET", holds, put)
	c.addAll("ZADD", lapsed, stamps)
	c.addAll("ZREM", lapsed, settled)
	if len(put) > 0 || b.keep != 0 { // a removal needs no later expiry
		c.add("PEXPIRE", holds, b.lasts())
	}
	if len(stamps) > 0 {
		c.add("PEXPIRE", lapsed, b.keeps()+dayMillis)
	}
	return removals
}

// write adds the command that stores or deletes the answer.
func (a *answer) write(c *commands, now int64) {
	if a.now == nil {
		c.add("DEL", a.key)
		return
	}
	expires := max(1, (a.now.Expires-now+999)/1000)
	c.add("SET", a.key, answerText(a.now), "PX", expires)
}
