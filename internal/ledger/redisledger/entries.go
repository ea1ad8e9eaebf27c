package redisledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// readAtOnce is how many entries are read with one command, so that a long log does not hold up other clients.
const readAtOnce = 5000

// Entries lists the log of one bucket.
func (l *Ledger) Entries(ctx context.Context, q quota.Query) ([]quota.Entry, error) {
	members, err := l.members(ctx, q)
	if err != nil {
		return nil, err
	}
	entries := make([]quota.Entry, len(members))
	codes := make(map[string]string) // label lines by code
	for i, m := range members {
		fields := strings.SplitN(m.Member.(string), ":", 5)
		if len(fields) < 4 {
			return nil, fmt.Errorf("%w: %s holds %q, which is no entry", quota.ErrLedgerUnusable, logKey(q.Credential, q.Bucket), m.Member)
		}
		e := quota.Entry{At: fromMicro(int64(m.Score)), ID: fields[2], Bucket: q.Bucket}
		e.Total, _ = strconv.ParseInt(fields[0], 10, 64)
		e.Units, _ = strconv.ParseInt(fields[1], 10, 64)
		entries[i] = e
		codes[fields[3]] = ""
	}
	if err := l.readLabels(ctx, q.Credential, codes); err != nil {
		return nil, err
	}
	for i, m := range members {
		fields := strings.SplitN(m.Member.(string), ":", 5)
		line := codes[fields[3]]
		if len(fields) == 5 {
			line += "&" + quota.LabelRun + "=" + fields[4]
		}
		if entries[i].Labels, err = quota.ParseLabels(line); err != nil {
			return nil, fmt.Errorf("entry %s: %w", entries[i].ID, err)
		}
	}
	return entries, nil
}

// members reads the entries' members and scores, oldest first, in bounded steps.
func (l *Ledger) members(ctx context.Context, q quota.Query) ([]redis.Z, error) {
	key, from := logKey(q.Credential, q.Bucket), "-inf"
	if !q.Since.IsZero() {
		from = "(" + strconv.FormatInt(q.Since.UnixMicro(), 10)
	}
	if q.Limit > 0 {
		members, err := l.client.ZRevRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: from, Max: "+inf", Count: int64(q.Limit)}).Result()
		slices.Reverse(members)
		return members, explain(err)
	}
	var all []redis.Z
	for {
		some, err := l.client.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: from, Max: "+inf", Count: readAtOnce}).Result()
		if err != nil {
			return nil, explain(err)
		}
		all = append(all, some...)
		if len(some) < readAtOnce {
			return all, nil
		}
		from = "(" + strconv.FormatInt(int64(some[len(some)-1].Score), 10)
	}
}

// readLabels fills in the lines of the codes. An entry whose line was lost keeps its code as the only label.
func (l *Ledger) readLabels(ctx context.Context, credential string, codes map[string]string) error {
	var asked []string
	for code := range codes {
		switch {
		case strings.HasPrefix(code, "="):
			codes[code] = code[1:]
		case code != "":
			asked = append(asked, code)
		}
	}
	for some := range slices.Chunk(asked, readAtOnce) {
		lines, err := l.client.HMGet(ctx, labelsKey(credential), some...).Result()
		if err != nil {
			return explain(err)
		}
		for i, code := range some {
			line, ok := lines[i].(string)
			if !ok {
				line = quota.Labels{"labels_lost": code}.Encode()
			}
			codes[code] = line
		}
	}
	return nil
}

// Reservations lists what is set aside in the bucket.
func (l *Ledger) Reservations(ctx context.Context, credential, bucket string) ([]quota.Reservation, error) {
	now, err := l.Time(ctx)
	if err != nil {
		return nil, err
	}
	fields, err := l.client.HGetAll(ctx, stateKey(credential, bucket)).Result()
	if err != nil {
		return nil, explain(err)
	}
	now = fromMicro(max(now.UnixMicro(), newestIn(fields[stateField])+1))
	var list []quota.Reservation
	for field, value := range fields {
		if id, ok := strings.CutPrefix(field, "r:"); ok {
			if r := parseReservation(bucket, id, value); r.ExpiresAt.After(now) {
				list = append(list, r)
			}
		}
	}
	slices.SortFunc(list, func(a, b quota.Reservation) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// parseReservation reads a field r:<id> of a state hash (bucket.lua).
func parseReservation(bucket, id, value string) quota.Reservation {
	fields := strings.SplitN(value, ":", 7)
	number := func(i int) int64 { n, _ := strconv.ParseInt(fields[i], 10, 64); return n }
	r := quota.Reservation{ID: quota.ReservationID(bucket, id), Bucket: bucket}
	if len(fields) == 7 {
		r.Left, r.ExpiresAt, r.Drawn, r.Units = number(0), fromMicro(number(1)), number(2), number(3)
		r.CreatedAt, r.Manual, r.Note = fromMicro(number(4)), fields[5] == "1", fields[6]
	}
	return r
}
