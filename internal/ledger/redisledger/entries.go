package redisledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// readAtOnce is how many entries are read with one command, so that a long log does not hold up
// other clients.
const readAtOnce = 5000

// Entries lists the log of one bucket.
func (l *Ledger) Entries(ctx context.Context, q quota.Query) ([]quota.Entry, error) {
	members, err := l.members(ctx, q)
	if err != nil {
		return nil, err
	}
	parsed := make([]member, len(members))
	codes := make(map[string]string) // label lines by code
	for i, z := range members {
		if parsed[i], err = parseMember(z.Member.(string), z.Score); err != nil {
			return nil, damaged(q.Credential, q.Bucket, err)
		}
		codes[parsed[i].mark] = ""
	}
	if err := l.readLabels(ctx, q.Credential, codes); err != nil {
		return nil, err
	}
	entries := make([]quota.Entry, len(parsed))
	for i, m := range parsed {
		labels, err := m.labels(codes[m.mark])
		if err != nil {
			return nil, damaged(q.Credential, q.Bucket, errLabels)
		}
		entries[i] = quota.Entry{At: fromMicro(m.at), ID: m.id, Bucket: q.Bucket, Units: m.units, Total: m.total, Labels: labels}
	}
	return entries, nil
}

// members reads the entries' members and scores, oldest first, in bounded steps.
func (l *Ledger) members(ctx context.Context, q quota.Query) ([]redis.Z, error) {
	key, from, to := logKey(q.Credential, q.Bucket), after(q.Since), "+inf"
	if !q.Until.IsZero() {
		to = strconv.FormatInt(q.Until.UnixMicro(), 10)
	}
	if q.Limit > 0 {
		members, err := l.client.ZRevRangeByScoreWithScores(ctx, key,
			&redis.ZRangeBy{Min: from, Max: to, Count: int64(q.Limit)}).Result()
		slices.Reverse(members)
		return members, explain(err)
	}
	var all []redis.Z
	for {
		most := readAtOnce
		if q.First > 0 {
			most = min(most, q.First-len(all))
		}
		some, err := l.client.ZRangeByScoreWithScores(ctx, key,
			&redis.ZRangeBy{Min: from, Max: to, Count: int64(most)}).Result()
		if err != nil {
			return nil, explain(err)
		}
		all = append(all, some...)
		if len(some) < most || len(all) == q.First {
			return all, nil
		}
		last, err := parseScore(some[len(some)-1].Score)
		if err != nil {
			return nil, damaged(q.Credential, q.Bucket, err)
		}
		from = "(" + strconv.FormatInt(last, 10)
	}
}

// after is the lower end of a range of scores that begins after a time.
func after(since time.Time) string {
	if since.IsZero() {
		return "-inf"
	}
	return "(" + strconv.FormatInt(since.UnixMicro(), 10)
}

// readLabels fills in the lines of the codes. An entry whose line was lost keeps its code as the
// only label.
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
	if text, ok := fields[stateField]; ok {
		s, ok := parseState(text)
		if !ok {
			return nil, damaged(credential, bucket, errState)
		}
		now = fromMicro(max(now.UnixMicro(), s.newest+1))
	}
	var list []quota.Reservation
	for field, value := range fields {
		if id, ok := strings.CutPrefix(field, "r:"); ok {
			r, err := parseReservation(bucket, id, value)
			if err != nil {
				return nil, damaged(credential, bucket, err)
			}
			if r.ExpiresAt.After(now) {
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
func parseReservation(bucket, id, value string) (quota.Reservation, error) {
	r := quota.Reservation{ID: quota.ReservationID(bucket, id), Bucket: bucket}
	fields := strings.SplitN(value, ":", 7)
	if len(fields) < 7 {
		return r, fmt.Errorf("the reservation %.64q cannot be read", r.ID)
	}
	var n [5]int64
	for i := range n {
		var err error
		if n[i], err = parseWhole(fields[i]); err != nil || n[i] > quota.MaxTotal {
			return r, fmt.Errorf("the reservation %.64q cannot be read", r.ID)
		}
	}
	r.Left, r.ExpiresAt, r.Drawn, r.Units, r.CreatedAt = n[0], fromMicro(n[1]), n[2], n[3], fromMicro(n[4])
	r.Manual, r.Note = fields[5] == "1", fields[6]
	return r, nil
}

// member is an entry as its log holds it.
type member struct {
	at, total, units int64
	id, mark, run    string // mark: the code of the labels, or = and their line
}

// parseMember reads a member of a log and its score (bucket.lua).
func parseMember(text string, score float64) (member, error) {
	var m member
	fields := strings.SplitN(text, ":", 5)
	if len(fields) < 4 {
		return m, errEntry
	}
	if len(fields) == 5 {
		m.run = fields[4]
	}
	m.id, m.mark = fields[2], fields[3]
	var err error
	if m.at, err = parseScore(score); err != nil {
		return m, err
	}
	total, err := parseWhole(fields[0])
	if err != nil || total > quota.MaxTotal {
		return m, errEntry
	}
	units, err := parseWhole(fields[1])
	if err != nil || units < 1 || units > total {
		return m, errEntry
	}
	m.total, m.units = total, units
	return m, nil
}

var (
	errEntry = errors.New("an entry cannot be read")
	errTime  = errors.New("the time of an entry cannot be read")

	errState  = errors.New("its state cannot be read")
	errLabels = errors.New("the labels of an entry cannot be read")
)

// labels puts the run to the line that the mark stands for.
func (m member) labels(line string) (quota.Labels, error) {
	if m.run != "" {
		line += "&" + quota.LabelRun + "=" + m.run
	}
	return quota.ParseLabels(line)
}

// parseWhole reads a number as the scripts write them.
func parseWhole(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err
}

// parseScore reads a stamp.
func parseScore(score float64) (int64, error) {
	if score >= 0 && score < quota.MaxTotal && score == math.Trunc(score) {
		return int64(score), nil
	}
	return 0, errTime
}

// damaged says which bucket it is that cannot be read.
func damaged(credential, bucket string, what error) error {
	return &quota.DamagedError{Credential: credential, Bucket: bucket, What: what.Error()}
}
