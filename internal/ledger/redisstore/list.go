package redisstore

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// maxPage is how many entries are read at once.
const maxPage = 1000

// entries returns entries stamped after a time and up to another, oldest first, at most so many.
func (s *Store) entries(ctx context.Context, credential, bucket string, after, until int64,
	most int) (entries []quota.LogEntry, err error) {
	for most > 0 {
		count := min(most, maxPage)
		page, err := s.readRange(ctx, credential, bucket, "ZRANGEBYSCORE", logKey(credential, bucket),
			after, until, count)
		entries = append(entries, page...)
		if err != nil || len(page) < count {
			return entries, err
		}
		most -= count
		after = page[count-1].At
	}
	return entries, nil
}

// readRange reads entries stamped after a time and up to another, the oldest with ZRANGEBYSCORE,
// the newest with ZREVRANGEBYSCORE.
func (s *Store) readRange(ctx context.Context, credential, bucket, command, key string,
	after, until int64, most int) (entries []quota.LogEntry, err error) {
	from, to := "("+strconv.FormatInt(after, 10), strconv.FormatInt(until, 10)
	if command == "ZREVRANGEBYSCORE" {
		from, to = to, from
	}
	reply, err := s.client.Do(ctx, command, key, from, to, "WITHSCORES", "LIMIT", 0, most).Slice()
	if err != nil {
		return nil, explainRead(err)
	}
	if entries, err = entriesOf(reply); err != nil {
		return entries, &quota.DamagedError{Credential: credential, Bucket: bucket, Lost: true,
			What: fmt.Sprintf("%s: %.64q", unreadable, reply[2*len(entries)])}
	}
	return entries, nil
}

// Scan implements ledger.Store.
func (s *Store) Scan(ctx context.Context, q quota.Query) iter.Seq2[quota.Entry, error] {
	return s.list(ctx, q, logKey(q.Credential, q.Bucket))
}

// Notes implements ledger.Store.
func (s *Store) Notes(ctx context.Context, q quota.Query) iter.Seq2[quota.Entry, error] {
	return s.list(ctx, q, notesKey(q.Credential, q.Bucket))
}

// list reads entries in pages. The newest, if there is a limit, are read first.
func (s *Store) list(ctx context.Context, q quota.Query, key string) iter.Seq2[quota.Entry, error] {
	return func(yield func(quota.Entry, error) bool) {
		after, until := micros(q.Since, -quota.Never), micros(q.Until, quota.Never)
		if q.Limit > 0 {
			entries, err := s.newest(ctx, q, key, after, until)
			for _, e := range slices.Backward(entries) {
				if !yieldEntry(yield, q, e) {
					return
				}
			}
			if err != nil {
				yield(quota.Entry{}, err)
			}
			return
		}
		for most := q.First; ; {
			count := maxPage
			if q.First > 0 {
				count = min(most, maxPage)
			}
			page, err := s.readRange(ctx, q.Credential, q.Bucket, "ZRANGEBYSCORE", key, after, until,
				count)
			for _, e := range page {
				if !yieldEntry(yield, q, e) {
					return
				}
				after = e.At
			}
			if err != nil {
				yield(quota.Entry{}, err)
			}
			if most -= count; err != nil || len(page) < count || most == 0 {
				return
			}
		}
	}
}

// newest reads the newest entries of a query, newest first.
func (s *Store) newest(ctx context.Context, q quota.Query, key string, after, until int64) (
	entries []quota.LogEntry, err error) {
	for len(entries) < q.Limit {
		count := min(q.Limit-len(entries), maxPage)
		page, err := s.readRange(ctx, q.Credential, q.Bucket, "ZREVRANGEBYSCORE", key, after, until,
			count)
		entries = append(entries, page...)
		if err != nil || len(page) < count {
			return entries, err
		}
		until = page[count-1].At - 1
	}
	return entries, nil
}

// yieldEntry yields an entry, or that its labels cannot be read, which ends the list.
func yieldEntry(yield func(quota.Entry, error) bool, q quota.Query, e quota.LogEntry) bool {
	entry, err := e.Entry(q)
	return yield(entry, err) && err == nil
}

// micros is a time as it is stored, and otherwise when there is none.
func micros(t time.Time, otherwise int64) int64 {
	if t.IsZero() {
		return otherwise
	}
	return t.UnixMicro()
}

// Sums implements ledger.Store.
func (s *Store) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	kept, err := s.sums(ctx, q)
	if err != nil {
		return nil, err
	}
	return kept.Sums(q)
}

// sums reads the sums of the grains from a time on, by days, since the oldest entry.
func (s *Store) sums(ctx context.Context, q quota.SumQuery) (kept quota.Tally, err error) {
	oldest, err := s.entries(ctx, q.Credential, q.Bucket, -quota.Never, quota.Never, 1)
	newest, err2 := s.newest(ctx, quota.Query{Credential: q.Credential, Bucket: q.Bucket, Limit: 1},
		logKey(q.Credential, q.Bucket), -quota.Never, quota.Never)
	if err != nil || err2 != nil || len(oldest) == 0 || len(newest) == 0 {
		return kept, firstError(err, err2)
	}
	since := micros(q.Since, -quota.Never)
	longest := 2 * quota.MaxWindow.Microseconds() // an older entry is damaged
	for at := dayOf(max(oldest[0].At, since, newest[0].At-longest)); at <= newest[0].At; at += day {
		fields, err := s.client.HGetAll(ctx, sumsKey(q.Credential, q.Bucket, at)).Result()
		if err != nil {
			return kept, explainRead(err)
		}
		for field, value := range fields {
			start, what, labels, n, err := parseSum(at, field, value)
			switch {
			case err != nil:
				return kept, &quota.DamagedError{Credential: q.Credential, Bucket: q.Bucket,
					What: fmt.Sprintf("the sum %.64q cannot be read", field)}
			case start >= since:
				kept.Add(start, labels, n, calls(what, n))
			}
		}
	}
	kept.DropZero()
	return kept, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// BucketsOf implements ledger.Store.
func (s *Store) BucketsOf(ctx context.Context, credential string) ([]quota.BucketTotal, error) {
	names, err := s.client.ZRangeByScore(ctx, bucketsKey(credential), &redis.ZRangeBy{Min: "-inf",
		Max: "+inf"}).Result()
	if err != nil {
		return nil, explain(err)
	}
	slices.Sort(names)
	var all []quota.BucketTotal
	for some := range slices.Chunk(names, maxPage) {
		snap, err := s.snapshot(ctx, credential, []quota.Scope{{Buckets: some}})
		if err != nil {
			return nil, err
		}
		for _, b := range snap.order {
			if b.state == "" && b.member == "" && len(b.Holds) == 0 {
				continue // it has expired
			}
			of := quota.BucketTotal{Bucket: b.Name, Units: b.stored.Total,
				Noted: b.State.SuspendedUntil != 0 || len(b.State.Others) > 0}
			last := b.stored.At
			for _, h := range b.Holds {
				of.Units += h.Left()
				last = max(last, h.Created)
			}
			of.LastAt = stampTime(last)
			all = append(all, of)
		}
	}
	return all, nil
}

// Unlisted returns the buckets that have a state and are not in the list of buckets. It looks at
// every key of the server.
func (s *Store) Unlisted(ctx context.Context, credential string) (names []string, err error) {
	var node redis.Cmdable = s.client
	if cluster, is := s.client.(*redis.ClusterClient); is {
		if node, err = cluster.MasterForKey(ctx, bucketsKey(credential)); err != nil {
			return nil, explain(err)
		}
	}
	listed, err := s.client.ZRangeByScore(ctx, bucketsKey(credential),
		&redis.ZRangeBy{Min: "-inf", Max: "+inf"}).Result()
	if err != nil {
		return nil, explain(err)
	}
	keys := node.Scan(ctx, 0, stateKey(credential, "*"), maxPage).Iterator()
	for keys.Next(ctx) {
		name, _ := strings.CutPrefix(strings.TrimSuffix(keys.Val(), ":state"), prefix(credential))
		if !slices.Contains(listed, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, explain(keys.Err())
}

// Mark implements ledger.Store: the newest entry and the revision of each bucket.
func (s *Store) Mark(ctx context.Context, credential string, buckets []string) (string, error) {
	snap, err := s.snapshot(ctx, credential, []quota.Scope{{Buckets: buckets}})
	if err != nil {
		return "", err
	}
	var text string
	for _, b := range snap.order {
		text += b.member + " " + mark(b.state) + "\n"
	}
	return text, nil
}
