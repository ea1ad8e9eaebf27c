package redisledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// Entries are added up by sums.lua, off the way of a charge, so that it costs no more for them: a
// caller does it after one charge of so many, and what is not in the sums yet is read as entries.
const (
	addUpEvery  = 256  // µs of stamps, which is about as many charges
	addedAtOnce = 2000 // entries in one step, which blocks the server for a few milliseconds
	readNewest  = 512  // entries that a reader adds up by itself, at most
)

// sumsAreDue reports whether the caller of the charge at a time is the one who adds up.
func sumsAreDue(at time.Time) bool { return at.UnixMicro()%addUpEvery == 0 }

// addUp has the server add up entries that are not in the sums yet; false when there are more.
func (l *Ledger) addUp(ctx context.Context, credential, bucket string) (bool, error) {
	keys := append(keysOf(credential, bucket), sumsKey(credential, bucket))
	done, err := l.run1(ctx, "sums", keys, numbers{addedAtOnce}.blob())
	return done == 1, err
}

// maxReads is how often a reader adds up because others charge faster than it reads.
const maxReads = 20

// Sums implements quota.Ledger. Where the sums do not reach the newest entries, because the log is
// older than they are or they were lost, the entries are added up first, in steps.
func (l *Ledger) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	if err := l.lapse(ctx, q.Credential, q.Bucket); err != nil {
		return nil, err
	}
	for range maxReads {
		s, err := l.readSums(ctx, q)
		if err != nil {
			return nil, err
		}
		if int64(len(s.newest)) < l.readNewest { // they are all that there are
			s.summed = summed{}
			return l.sums(ctx, q, s)
		}
		if !s.none && s.newest[0].Score <= float64(s.upto) && s.follow(s.newest) {
			return l.sums(ctx, q, s)
		}
		for done := false; !done; {
			if done, err = l.addUp(ctx, q.Credential, q.Bucket); err != nil {
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("%w: bucket %s of %s is charged faster than its entries are added up",
		quota.ErrUnreachable, q.Bucket, q.Credential)
}

// read is one picture of what is kept of a bucket's sums.
type read struct {
	summed
	newest []redis.Z // entries, oldest first
	oldest []redis.Z // the oldest entry of all
	none   bool      // no sums are kept
}

func (l *Ledger) readSums(ctx context.Context, q quota.SumQuery) (r read, err error) {
	log, sums, from := logKey(q.Credential, q.Bucket), sumsKey(q.Credential, q.Bucket), "-inf"
	if !q.Since.IsZero() {
		from = strconv.FormatInt(wholeSince(q.Since).UnixMicro()/quota.Grain.Microseconds(), 10)
	}
	pipe := l.client.TxPipeline()
	state := pipe.HMGet(ctx, stateKey(q.Credential, q.Bucket), summedField)
	newest := pipe.ZRevRangeWithScores(ctx, log, 0, l.readNewest-1)
	oldest := pipe.ZRangeWithScores(ctx, log, 0, 0)
	number := pipe.ZCard(ctx, sums)
	chunks := pipe.ZRangeByScoreWithScores(ctx, sums, &redis.ZRangeBy{Min: from, Max: "+inf"})
	if _, err := pipe.Exec(ctx); err != nil {
		return r, explain(err)
	}
	text, _ := state.Val()[0].(string)
	r = read{parseSummed(text), newest.Val(), oldest.Val(), number.Val() == 0}
	r.add(chunks.Val())
	slices.Reverse(r.newest)
	return r, nil
}

// wholeSince is the start of the first whole grain from a time on.
func wholeSince(since time.Time) time.Time {
	return quota.GrainOf(since.Add(quota.Grain - time.Microsecond))
}

// sums adds the newest entries to what is kept, and picks what is asked for.
func (l *Ledger) sums(ctx context.Context, q quota.SumQuery, r read) ([]quota.Sum, error) {
	later := slices.IndexFunc(r.newest, func(z redis.Z) bool { return z.Score > float64(r.upto) })
	if later < 0 {
		later = len(r.newest)
	}
	newest, err := parseMembers(q.Credential, q.Bucket, r.newest[later:])
	if err != nil {
		return nil, err
	}
	r.addMembers(newest)
	if !q.Since.IsZero() {
		r.tally.DropBefore(wholeSince(q.Since).UnixMicro())
	}
	if len(r.oldest) > 0 {
		if err := l.trimOldest(ctx, q, &r); err != nil {
			return nil, err
		}
	}
	r.tally.DropZero()
	return l.lines(ctx, q, r.tally)
}

// trimOldest takes what was trimmed out of the sums: of the oldest entry's grain, some entries may
// be gone, and then those that are left are read.
func (l *Ledger) trimOldest(ctx context.Context, q quota.SumQuery, r *read) error {
	oldest, err := parseScore(r.oldest[0].Score)
	if err != nil {
		return damaged(q.Credential, q.Bucket, err)
	}
	r.tally.DropBefore(oldest)
	kept, end := r.tally.In(oldest), quota.Grained(oldest)+quota.Grain.Microseconds()-1
	end = min(end, int64(r.newest[len(r.newest)-1].Score)) // others charge meanwhile
	if kept == 0 {
		return nil
	}
	until := fromMicro(end)
	units, err := l.Between(ctx, q.Credential, q.Bucket, fromMicro(oldest-1), until)
	if err != nil || units == kept {
		return err
	}
	query := quota.Query{Credential: q.Credential, Bucket: q.Bucket, Until: until}
	left, err := l.members(ctx, query)
	if err == nil {
		r.tally.Drop(oldest)
		r.addMembers(left)
	}
	return err
}

// lines puts the lines of labels to the marks.
func (l *Ledger) lines(ctx context.Context, q quota.SumQuery, byMark quota.Tally) (
	[]quota.Sum, error) {
	codes := make(map[string]string)
	byMark.Each(func(_ int64, mark string, _, _ int64) { codes[mark] = "" })
	if err := l.readLabels(ctx, q.Credential, codes); err != nil {
		return nil, err
	}
	for mark, line := range codes {
		if labels, err := quota.ParseLabels(line); err == nil && strings.HasPrefix(mark, "=") {
			codes[mark] = labels.Encode() // what denies was put behind the others
		}
	}
	var byLine quota.Tally
	byMark.Each(func(at int64, mark string, units, entries int64) {
		byLine.Add(at, codes[mark], units, entries)
	})
	sums, err := byLine.Sums()
	if err != nil {
		return nil, damaged(q.Credential, q.Bucket, errLabels)
	}
	return sums, nil
}

// summed is what the store keeps of who spent how much (sums.lua).
type summed struct {
	upto  int64       // the stamp up to which entries are in the sums; 0 for none
	total int64       // the running total after the entry of that stamp
	tally quota.Tally // by marks
}

// parseSummed reads the field of a state.
func parseSummed(text string) (s summed) {
	if len(text) == 16 {
		s.upto, s.total = int64(doubleAt(text, 0)), int64(doubleAt(text, 1))
	}
	return s
}

// follow reports whether the sums are of the log whose newest entries these are, so that the first
// that is not in them follows from their total.
func (s summed) follow(newest []redis.Z) bool {
	for i, z := range newest {
		m, err := parseMember(z)
		switch {
		case err != nil:
			return false
		case m.at > s.upto:
			return m.total-m.units == s.total
		case i == len(newest)-1:
			return m.total == s.total
		}
	}
	return false
}

func (s *summed) addMembers(list []member) {
	for _, m := range list {
		s.tally.Add(m.at, m.mark, m.units, 1)
	}
}

// add reads members of the sums.
func (s *summed) add(chunks []redis.Z) {
	for _, z := range chunks {
		text, _ := z.Member.(string)
		_, records, _ := strings.Cut(text, "\n")
		for record := range strings.SplitSeq(records, "\n") {
			mark, sum, _ := strings.Cut(record, ":")
			units, entries, _ := strings.Cut(sum, ":")
			u, _ := strconv.ParseInt(units, 10, 64)
			n, _ := strconv.ParseInt(entries, 10, 64)
			s.tally.Add(int64(z.Score)*quota.Grain.Microseconds(), mark, u, n)
		}
	}
}

// Between implements quota.Ledger: the running totals of the first and the last entry say it.
func (l *Ledger) Between(ctx context.Context, credential, bucket string, from, to time.Time) (
	int64, error) {
	if err := l.lapse(ctx, credential, bucket); err != nil {
		return 0, err
	}
	log, pipe := logKey(credential, bucket), l.client.TxPipeline()
	until := strconv.FormatInt(to.UnixMicro(), 10)
	by := &redis.ZRangeBy{Min: after(from), Max: until, Count: 1}
	first := pipe.ZRangeByScoreWithScores(ctx, log, by)
	last := pipe.ZRevRangeByScoreWithScores(ctx, log, by)
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, explain(err)
	}
	ends, err := parseMembers(credential, bucket, append(first.Val(), last.Val()...))
	if err != nil || len(ends) < 2 {
		return 0, err
	}
	return ends[1].total - ends[0].total + ends[0].units, nil
}
