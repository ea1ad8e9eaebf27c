package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

const (
	maxTrim = 64 // maximum number of entries, or of bucket names, to delete at once

	// trimDelay is how much longer than needed entries stay, so that many are deleted at once.
	trimDelay = 60_000_000 // µs
)

// trim deletes the oldest entries of a bucket if no window needs them, after a change at now. It
// ignores errors, because a later change tries again.
func (s *Store) trim(ctx context.Context, credential, bucket string, now int64) {
	key := logKey(credential, bucket)
	if now < s.trimDue.get(key) {
		return
	}
	due, err := s.trimOldest(ctx, credential, bucket)
	if err = cmp.Or(err, s.unlist(ctx, credential, now)); err == nil {
		s.trimDue.put(key, due)
	}
}

// trimOldest deletes the oldest entries if no window needs them, and returns when to try again.
func (s *Store) trimOldest(ctx context.Context, credential, bucket string) (due int64, err error) {
	snap, err := s.snapshot(ctx, credential, []quota.Scope{{Buckets: []string{bucket}}})
	if err != nil {
		return 0, err
	}
	b := snap.order[0]
	if b.damage != nil {
		return snap.now + trimDelay, nil
	}
	keep := 1000 * b.keeps()
	entries, err := s.entries(ctx, credential, bucket, -quota.Never, quota.Never, maxTrim+1)
	if err != nil {
		return 0, err
	}
	young := func(e quota.LogEntry) bool { return e.At > snap.now-keep }
	old := entries
	if i := slices.IndexFunc(entries, young); i >= 0 {
		old, due = entries[:i], entries[i].At+keep+trimDelay
	} else if len(entries) <= maxTrim {
		due = snap.now + keep
	}
	if old = old[:min(maxTrim, len(old))]; len(old) == 0 {
		return due, nil
	}
	result, err := s.send(ctx, b.forget(old, snap.now-keep), snap.now)
	if result != done {
		due = 0
	}
	return due, err
}

// unlist removes expired buckets from the list of buckets. It checks that they are gone: a listed
// time can be too early, because it is renewed only once an hour.
func (s *Store) unlist(ctx context.Context, credential string, now int64) error {
	names, err := s.client.ZRangeByScore(ctx, bucketsKey(credential), &redis.ZRangeBy{Min: "-inf",
		Max: strconv.FormatInt(now/1000, 10), Count: maxTrim}).Result()
	if err != nil || len(names) == 0 {
		return err
	}
	snap, err := s.snapshot(ctx, credential, []quota.Scope{{Buckets: names}})
	if err != nil {
		return err
	}
	c := &commands{credential: credential}
	for _, b := range snap.order {
		if b.state != "" {
			b.list(c)
			continue
		}
		c.guardString(stateKey(credential, b.Name), "")
		c.add("ZREM", bucketsKey(credential), b.Name)
	}
	_, err = s.send(ctx, c, 0)
	return err
}

// forget returns the commands that delete the entries, and lapses and notes up to a time.
func (b *bucket) forget(entries []quota.LogEntry, until int64) *commands {
	c := &commands{credential: b.Credential}
	log := b.key("log")
	c.guardEnd("ZRANGE", log, memberText(entries[0]))
	c.guardString(b.key("state"), b.state)
	c.add("ZREMRANGEBYSCORE", log, "-inf", entries[len(entries)-1].At)
	c.add("ZREMRANGEBYSCORE", b.key("lapsed"), "-inf", until)
	c.add("ZREMRANGEBYSCORE", b.key("notes"), "-inf", until)
	b.count(entries, -1)
	b.writeSums(c, false)
	return c
}
