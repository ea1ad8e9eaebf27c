package redisstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// The results of a commit.
const (
	done   = "done"
	locked = "locked" // by another process
	raced  = "changed"
	late   = "late" // this process was stopped since the snapshot
)

// commit writes what decisions have changed in the snapshot, all or nothing, if the snapshot still
// stands.
func (s *Store) commit(ctx context.Context, snap *snapshot) (result string, err error) {
	c := newCommands(snap.credential)
	for _, b := range snap.order {
		if b.written {
			b.write(c)
		}
	}
	for _, a := range snap.answers {
		if a.dirty {
			a.write(c, snap.now)
		}
	}
	if len(c.list) == 0 {
		return s.unchanged(ctx, snap)
	}
	for _, b := range snap.order {
		c.guard("newest", logKey(b.Credential, b.Name), b.member)
		c.guard("string", stateKey(b.Credential, b.Name), b.state)
	}
	for _, a := range snap.answers {
		if !a.unread {
			c.guard("string", a.key, a.stored)
		}
	}
	if s.beforeCommit != nil {
		s.beforeCommit()
	}
	result, err = s.send(ctx, c, snap.now)
	if err == nil && result == done {
		for _, b := range snap.order {
			if b.renewed {
				s.states.put(stateKey(b.Credential, b.Name), keptState{b.newState, b.State, b.Holds})
			}
		}
	}
	return result, err
}

// unchanged checks that lookups after the snapshot saw the same states.
func (s *Store) unchanged(ctx context.Context, snap *snapshot) (result string, err error) {
	if !snap.searched {
		return done, nil
	}
	keys := make([]string, len(snap.order))
	for i, b := range snap.order {
		keys[i] = stateKey(b.Credential, b.Name)
	}
	states, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return "", explainRead(err)
	}
	for i, b := range snap.order {
		if text, _ := states[i].(string); text != b.state {
			return raced, nil
		}
	}
	return done, nil
}

// commands is a list of commands for commit.lua, with its guards.
type commands struct {
	keys    []string
	numbers map[string]int // of the keys
	guards  []any
	guarded int
	list    []any
}

func newCommands(credential string) *commands {
	lock := lockKey(credential)
	return &commands{keys: []string{lock}, numbers: map[string]int{lock: 1}}
}

func (c *commands) number(key string) int {
	if c.numbers[key] == 0 {
		c.keys = append(c.keys, key)
		c.numbers[key] = len(c.keys)
	}
	return c.numbers[key]
}

// guard refuses the commit unless something is as it was.
func (c *commands) guard(what, key, value string) {
	c.guards = append(c.guards, what, c.number(key), value)
	c.guarded++
}

func (c *commands) add(command, key string, args ...any) {
	c.list = append(append(c.list, command, c.number(key), len(args)), args...)
}

// maxArgs is the most arguments of one command.
const maxArgs = 1000

// addAll adds a command with all of the arguments, a few at a time.
func (c *commands) addAll(command, key string, args []any) {
	for some := range slices.Chunk(args, maxArgs) {
		c.add(command, key, some...)
	}
}

// send runs commit.lua. at is the time of the snapshot, 0 if it does not matter.
func (s *Store) send(ctx context.Context, c *commands, at int64) (string, error) {
	args := append([]any{s.holder, at, c.guarded}, c.guards...)
	wrote := func(cmd *redis.Cmd) bool { return len(c.list) > 0 && cmd.Val() == done }
	result, err := s.change(ctx, "commit", c.keys, wrote, append(args, c.list...)...).Text()
	return result, explain(err)
}

// write adds the commands that write the changes of the bucket.
func (b *bucket) write(c *commands) {
	log, state := logKey(b.Credential, b.Name), stateKey(b.Credential, b.Name)
	keeps, lasts := b.keeps(), b.lasts(b.snap.now)
	hourly := b.hourly()
	if b.renewed {
		b.newState = stateText(&b.Bucket, newRevision())
		c.add("SET", state, b.newState, "PX", lasts)
	}
	if b.state == "" || hourly {
		b.list(c)
	}
	b.writeSums(c)
	b.writeHolds(c, lasts)
	for _, n := range b.notes {
		c.add("ZADD", notesKey(b.Credential, b.Name), n.At, memberText(n))
		c.add("PEXPIRE", notesKey(b.Credential, b.Name), keeps+dayMillis)
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
		c.add("PEXPIRE", log, keeps+dayMillis)
		if !b.renewed {
			c.add("PEXPIRE", state, lasts)
		}
	}
}

// list adds the commands that list the bucket. The list of an idle credential lasts a year longer
// than the bucket, because other buckets in it may last longer than this one.
func (b *bucket) list(c *commands) {
	lasts := b.lasts(b.snap.now)
	c.add("ZADD", bucketsKey(b.Credential), b.snap.now/1000+lasts, b.Name)
	c.add("PEXPIRE", bucketsKey(b.Credential), lasts+quota.MaxWindow.Milliseconds())
}

// hourly reports whether the changes renew the expiry of the log: the first entry of each hour
// does, and so does a change of older entries.
func (b *bucket) hourly() bool {
	return len(b.added) > 0 && (b.from != 0 || b.keep != 0 ||
		b.stored.At/(day/24) != b.added[0].At/(day/24))
}

// writeSums adds the commands that change the sums and renew their expiry. Sums outlive their
// entries.
func (b *bucket) writeSums(c *commands) {
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
	if len(b.added) > 0 && !b.hourly() {
		delete(days, sumsKey(b.Credential, b.Name, b.stored.At))
	}
	if b.keep != 0 { // sums of earlier entries last longer, too
		for at := b.snap.now - 2*(b.keep+2*day); at < b.snap.now; at += day {
			days[sumsKey(b.Credential, b.Name, at)] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(days)) {
		c.add("PEXPIRE", key, 2*(b.keeps()+2*dayMillis))
	}
}

func (b *bucket) writeHolds(c *commands, lasts int64) {
	holds, lapsed := holdsKey(b.Credential, b.Name), lapsedKey(b.Credential, b.Name)
	var put, gone, stamps, settled []any
	for id, text := range b.holds {
		if text != "" {
			put = append(put, id, text)
		} else {
			gone = append(gone, id)
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
	c.addAll("HDEL", holds, gone)
	c.addAll("ZREM", lapsed, settled)
	if len(b.Holds) > 0 {
		c.add("PEXPIRE", holds, lasts)
	}
	if len(stamps) > 0 {
		c.add("PEXPIRE", lapsed, b.keeps()+dayMillis)
	}
}

// write adds the command that keeps the answer or forgets it.
func (a *answer) write(c *commands, now int64) {
	if a.now == nil {
		c.add("DEL", a.key)
		return
	}
	expires := max(1, (a.now.Expires-now+999)/1000)
	c.add("SET", a.key, answerText(a.now), "PX", expires)
}

// learn records how far the server's clock is ahead.
func (s *Store) learn(now int64) { s.ahead.Store(now - time.Now().UnixMicro()) }

// clock estimates the server's time.
func (s *Store) clock() time.Time {
	return time.Now().Add(time.Duration(s.ahead.Load()) * time.Microsecond)
}
