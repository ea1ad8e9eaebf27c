package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// maxPage is the maximum number of entries or buckets that a command reads, and of entries or holds
// that a step of a repair writes, so that no command blocks the server for long.
const maxPage = 250

// span picks entries of a sorted set by their stamps.
type span struct {
	credential, bucket, key string
	after, until            int64
	limit                   int  // 0 for all
	newest                  bool // newest entries first
}

// read reads the entries of a span in pages, up to the first error. Notes can have equal stamps.
func (s *Store) read(ctx context.Context, picked span) (entries []quota.LogEntry, err error) {
	same := 0 // entries with the stamp of the last one read
	for {
		count := maxPage
		if picked.limit > 0 {
			count = min(picked.limit-len(entries), maxPage)
		}
		command, from, to := "ZRANGEBYSCORE", fmt.Sprintf("(%d", picked.after), fmt.Sprint(picked.until)
		if picked.newest {
			command, from, to = "ZREVRANGEBYSCORE", to, from
		}
		count += same
		page, err := s.client.Do(ctx, command, picked.key, from, to, "WITHSCORES", "LIMIT", 0,
			count).Slice()
		if err != nil {
			return entries, explainRead(err)
		}
		for pair := range slices.Chunk(page, 2) {
			e, err := entryOf(pair)
			if err != nil {
				return entries, &quota.DamagedError{Credential: picked.credential, Bucket: picked.bucket,
					Lost: true, What: fmt.Sprintf("%s: %.64q", unreadable, pair[0])}
			}
			if same > 0 && entries[len(entries)-1].At != e.At {
				same = 0
			}
			// compare IDs, because a correction may have changed the entry since it was read
			isRead := func(earlier quota.LogEntry) bool { return earlier.ID == e.ID }
			if slices.ContainsFunc(entries[len(entries)-same:], isRead) {
				continue
			}
			if entries, same = append(entries, e), same+1; len(entries) == picked.limit {
				return entries, nil
			}
			if picked.newest {
				picked.until = e.At
			} else {
				picked.after = e.At - 1
			}
		}
		if len(page) < 2*count {
			return entries, nil
		}
	}
}

// entries returns up to limit of the oldest entries of a bucket in a span.
func (s *Store) entries(ctx context.Context, credential, bucket string, after, until int64,
	limit int) ([]quota.LogEntry, error) {
	return s.read(ctx, span{credential, bucket, logKey(credential, bucket), after, until, limit,
		false})
}

// Entries implements ledger.Store.
func (s *Store) Entries(ctx context.Context, q quota.Query) ([]quota.LogEntry, error) {
	list := "log"
	if q.Notes {
		list = "notes"
	}
	after, until := q.Span()
	entries, err := s.read(ctx, span{q.Credential, q.Bucket, key(q.Credential, q.Bucket, list), after,
		until, cmp.Or(q.Limit, q.First), q.Limit > 0})
	if q.Limit > 0 {
		slices.Reverse(entries)
	}
	return entries, err
}

// Sums implements ledger.Store. It reads days since the oldest entry.
func (s *Store) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	var tally quota.Tally
	end := span{q.Credential, q.Bucket, logKey(q.Credential, q.Bucket), -quota.Never, quota.Never, 1,
		false}
	oldest, err := s.read(ctx, end)
	end.newest = true
	newest, err2 := s.read(ctx, end)
	if err = cmp.Or(err, err2); err != nil || len(oldest) == 0 || len(newest) == 0 {
		return nil, err
	}
	since, _ := quota.Query{Since: q.Since}.Span()
	longest := 2 * quota.MaxWindow.Microseconds() // an older entry is damaged
	for at := dayOf(max(oldest[0].At, since, newest[0].At-longest)); at <= newest[0].At; at += day {
		fields := make(map[string]string) // HSCAN can return a field twice
		scan := s.client.HScan(ctx, sumsKey(q.Credential, q.Bucket, at), 0, "", 4*maxPage).Iterator()
		for scan.Next(ctx) {
			if field := scan.Val(); scan.Next(ctx) {
				fields[field] = scan.Val()
			}
		}
		if err := scan.Err(); err != nil {
			return nil, explainRead(err)
		}
		for field, value := range fields {
			start, labels, units, calls, err := parseSum(at, field, value)
			switch {
			case err != nil:
				return nil, &quota.DamagedError{Credential: q.Credential, Bucket: q.Bucket,
					What: fmt.Sprintf("the sum %.64q cannot be read", field)}
			case start >= since:
				tally.Add(start, labels, units, calls)
			}
		}
	}
	tally.DropZero()
	return tally.Sums(q)
}

// listed returns the list of buckets.
func (s *Store) listed(ctx context.Context, credential string) ([]string, error) {
	names, err := s.client.ZRange(ctx, bucketsKey(credential), 0, -1).Result()
	slices.Sort(names)
	return names, explain(err)
}

// BucketsOf implements ledger.Store.
func (s *Store) BucketsOf(ctx context.Context, credential string) ([]quota.BucketTotal, error) {
	names, err := s.listed(ctx, credential)
	if err != nil {
		return nil, err
	}
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
			all = append(all, b.Total(b.stored))
		}
	}
	return all, nil
}

// Unlisted returns the buckets that have a state and are not in the list of buckets. It scans all
// keys of the server.
func (s *Store) Unlisted(ctx context.Context, credential string) (names []string, err error) {
	listed, err := s.listed(ctx, credential)
	if err != nil {
		return nil, err
	}
	var node redis.Cmdable = s.client
	if cluster, is := s.client.(*redis.ClusterClient); is {
		if node, err = cluster.MasterForKey(ctx, bucketsKey(credential)); err != nil {
			return nil, explain(err)
		}
	}
	keys := node.Scan(ctx, 0, stateKey(credential, "*"), maxPage).Iterator()
	for keys.Next(ctx) {
		name := strings.TrimSuffix(strings.TrimPrefix(keys.Val(), "quota:{"+credential+"}:"), ":state")
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
