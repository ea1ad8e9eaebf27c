package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// The results of a commit.
const (
	done   = "done"
	locked = "locked" // another process has the lock
	raced  = "changed"
	late   = "late" // this process was stopped since the snapshot
)

// commit writes the changes of the snapshot, all or nothing, if the snapshot is still valid.
// Without changes it only reads.
func (s *Store) commit(ctx context.Context, snap *snapshot) (result string, err error) {
	c := &commands{credential: snap.credential}
	for _, b := range snap.order {
		c.guardEnd("ZREVRANGE", b.key("log"), b.member)
		c.guardString(b.key("state"), b.state)
		if b.written {
			b.write(c)
		}
	}
	for _, a := range snap.answers {
		c.guardString(a.key, a.stored)
		if a.dirty {
			a.write(c, snap.now)
		}
	}
	switch {
	case len(c.list) == 0 && !snap.searched:
		return done, nil
	case len(c.list) == 0:
		return s.unchanged(ctx, c)
	case s.beforeCommit != nil:
		s.beforeCommit()
	}
	result, err = s.send(ctx, c, snap.now)
	if err == nil && result == done {
		for _, b := range snap.order {
			if b.renewed {
				s.states.put(b.key("state"), keptState{b.newState, b.State, b.Holds})
			}
		}
	}
	return result, err
}

// unchanged checks that the states did not change during lookups after the snapshot. New entries do
// not matter: they change no older ones.
func (s *Store) unchanged(ctx context.Context, c *commands) (result string, err error) {
	keys := make([]string, len(c.strings))
	for i, g := range c.strings {
		keys[i] = g.key
	}
	values, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return "", explainRead(err)
	}
	for i, g := range c.strings {
		if text, _ := values[i].(string); text != g.args[0] {
			return raced, nil
		}
	}
	return done, nil
}

// command is one command of a list. The args of a guard are the reply that it requires.
type command struct {
	name, key string
	args      []any
}

// commands is a list of commands on a credential for commit.lua, with its guards.
type commands struct {
	credential string
	strings    []command // GET; "" for none
	ends       []command // ZREVRANGE for the newest member of a log, ZRANGE for the oldest
	list       []command
}

func (c *commands) guardString(key, value string) {
	c.strings = append(c.strings, command{"GET", key, []any{value}})
}

func (c *commands) guardEnd(name, key, member string) {
	c.ends = append(c.ends, command{name, key, []any{member}})
}

func (c *commands) add(name, key string, args ...any) {
	c.list = append(c.list, command{name, key, args})
}

// addAll adds a command for all the arguments, repeated for each 1,000.
func (c *commands) addAll(name, key string, args []any) {
	for some := range slices.Chunk(args, 1000) {
		c.add(name, key, some...)
	}
}

// counts maps each command that changes a key to one that reads it and fails if the key is of
// another type. The first command of a list needs no such check: nothing is written before it.
var counts = map[string]string{"HSET": "HLEN", "HINCRBY": "HLEN", "HDEL": "HLEN", "ZADD": "ZCARD",
	"ZREM": "ZCARD", "ZREMRANGEBYSCORE": "ZCARD"}

// send runs commit.lua. at is the time of the snapshot, 0 if it does not matter.
func (s *Store) send(ctx context.Context, c *commands, at int64) (string, error) {
	lock := lockKey(c.credential)
	keys, numbers := []string{lock}, map[string]int{lock: 1}
	number := func(key string) int {
		if numbers[key] == 0 {
			keys = append(keys, key)
			numbers[key] = len(keys)
		}
		return numbers[key]
	}
	var values, ends, checks, list []any
	for _, g := range c.strings { // these keys follow the lock's
		number(g.key)
		values = append(values, g.args...)
	}
	for _, g := range c.ends {
		ends = append(ends, g.name, number(g.key), g.args[0])
	}
	for i, of := range c.list {
		if check := counts[of.name]; i > 0 && check != "" && numbers[of.key] == 0 {
			checks = append(checks, check, number(of.key))
		}
		list = append(append(list, of.name, number(of.key), len(of.args)), of.args...)
	}
	args := slices.Concat([]any{s.holder, at, len(values)}, values, []any{len(c.ends)}, ends,
		[]any{len(checks) / 2}, checks, list)
	wrote := func(cmd *redis.Cmd) bool { return len(c.list) > 0 && cmd.Val() == done }
	result, err := s.change(ctx, "commit", keys, wrote, args...).Text()
	return result, explain(err)
}

// learn records how far the server's clock is ahead.
func (s *Store) learn(now int64) { s.ahead.Store(now - time.Now().UnixMicro()) }

// clock estimates the server's time.
func (s *Store) clock() time.Time {
	return time.Now().Add(time.Duration(s.ahead.Load()) * time.Microsecond)
}
