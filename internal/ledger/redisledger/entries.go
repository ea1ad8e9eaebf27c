package redisledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
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
	if err := l.lapse(ctx, q.Credential, q.Bucket); err != nil {
		return nil, err
	}
	members, err := l.members(ctx, q)
	if err != nil {
		return nil, err
	}
	return l.entries(ctx, q, members)
}

// entries puts the labels to members.
func (l *Ledger) entries(ctx context.Context, q quota.Query, members []member) (
	[]quota.Entry, error) {
	codes := make(map[string]string) // label lines by code
	for _, m := range members {
		codes[m.mark] = ""
	}
	if err := l.readLabels(ctx, q.Credential, codes); err != nil {
		return nil, err
	}
	entries := make([]quota.Entry, len(members))
	for i, m := range members {
		labels, err := m.labels(codes[m.mark])
		if err != nil {
			return nil, damaged(q.Credential, q.Bucket, errLabels)
		}
		entries[i] = quota.Entry{
			At: fromMicro(m.at), ID: m.id, Bucket: q.Bucket,
			Units: m.units, Total: m.total, Labels: labels,
		}
	}
	return entries, nil
}

// members reads entries, oldest first, in bounded steps.
func (l *Ledger) members(ctx context.Context, q quota.Query) (all []member, err error) {
	return l.membersOf(ctx, logKey(q.Credential, q.Bucket), q)
}

// membersOf is members of a sorted set like a log.
func (l *Ledger) membersOf(ctx context.Context, key string, q quota.Query) (
	all []member, err error) {
	by := &redis.ZRangeBy{Min: after(q.Since), Max: "+inf", Count: int64(q.Limit)}
	if !q.Until.IsZero() {
		by.Max = strconv.FormatInt(q.Until.UnixMicro(), 10)
	}
	if q.Limit > 0 {
		newest, err := l.client.ZRevRangeByScoreWithScores(ctx, key, by).Result()
		if err != nil {
			return nil, explain(err)
		}
		slices.Reverse(newest)
		return parseMembers(q.Credential, q.Bucket, newest)
	}
	for {
		by.Count = readAtOnce
		if q.First > 0 {
			by.Count = min(by.Count, int64(q.First-len(all)))
		}
		page, err := l.client.ZRangeByScoreWithScores(ctx, key, by).Result()
		if err != nil {
			return nil, explain(err)
		}
		some, err := parseMembers(q.Credential, q.Bucket, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(page) < int(by.Count) || len(all) == q.First {
			return all, nil
		}
		by.Min = "(" + strconv.FormatInt(all[len(all)-1].at, 10)
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
	lines, err := l.linesOf(ctx, credential, maps.Keys(codes))
	for code := range codes {
		line, ok := lines[code]
		if !ok && code != "" {
			line = quota.Labels{"labels_lost": code}.Encode()
		}
		codes[code] = line
	}
	return err
}

// linesOf are the lines of labels by the codes that entries have. It leaves out those that were
// lost.
func (l *Ledger) linesOf(ctx context.Context, credential string, codes iter.Seq[string]) (
	map[string]string, error) {
	known := make(map[string]string)
	var asked []string
	for code := range codes {
		if line, written := strings.CutPrefix(code, "="); written {
			known[code] = line
		} else if code != "" {
			asked = append(asked, code)
		}
	}
	for some := range slices.Chunk(asked, readAtOnce) {
		lines, err := l.client.HMGet(ctx, labelsKey(credential), some...).Result()
		if err != nil {
			return nil, explain(err)
		}
		for i, code := range some {
			if line, ok := lines[i].(string); ok {
				known[code] = line
			}
		}
	}
	return known, nil
}

// Reservations lists what is set aside in the bucket.
func (l *Ledger) Reservations(ctx context.Context, credential, bucket string) (
	[]quota.Reservation, error) {
	if err := l.lapse(ctx, credential, bucket); err != nil {
		return nil, err
	}
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
			r, err := parseHold(bucket, id, value)
			if err != nil {
				return nil, damaged(credential, bucket, err)
			}
			if r.ExpiresAt.After(now) && !r.became {
				list = append(list, r.Reservation)
			}
		}
	}
	slices.SortFunc(list, func(a, b quota.Reservation) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// held is a reservation of a bucket as it is kept.
type held struct {
	quota.Reservation
	flags  int64
	became bool // an entry: a late settlement looks for it
}

// parseHold reads a field r:<id> of a state hash (holds.lua).
func parseHold(bucket, id, value string) (held, error) {
	name := strings.TrimRight(id, "~")
	became := name != id
	if !strings.Contains(name, ".") {
		name = quota.ReservationID(name, bucket)
	}
	h := held{Reservation: quota.Reservation{ID: name, Bucket: bucket}, became: became}
	n, tail, ok := unpackHold(value)
	if !ok {
		n, tail, ok = holdOfEarlier(value)
	}
	parts := strings.SplitN(tail, ":", 3) // labels, run, note
	if !ok || len(parts) < 3 || n[3] > n[5] || slices.Max(n[:]) > quota.MaxTotal {
		return h, fmt.Errorf("the reservation %.64q cannot be read", h.ID)
	}
	h.Left, h.ExpiresAt, h.Drawn, h.Units = n[0], fromMicro(n[1]), n[2], n[3]
	h.CreatedAt, h.Most, h.flags, h.Lapse = fromMicro(n[4]), n[5], n[6], quota.LapseRelease
	if h.flags&flagCharge != 0 {
		h.Lapse = quota.LapseCharge
	}
	h.Manual, h.Note = h.flags&flagManual != 0, parts[2]
	return h, nil
}

// holdOfEarlier reads a reservation as an earlier version wrote it: <left>:<expires>:<drawn>:<units>:
// <created>:<flags>:<note>, or with flags above 1 …:<flags>:<most>:<labels>:<run>:<note>. The most
// and the flags change places.
func holdOfEarlier(text string) (n [7]int64, tail string, ok bool) {
	fields := strings.SplitN(text, ":", 7)
	if len(fields) == 7 && fields[5] < "2" {
		fields = append(fields[:6], fields[3], "::"+fields[6])
	} else {
		fields = strings.SplitN(text, ":", 8)
	}
	if len(fields) < 8 {
		return n, "", false
	}
	for i, field := range fields[:7] {
		var err error
		if n[i], err = parseWhole(field); err != nil {
			return n, "", false
		}
	}
	n[5], n[6] = n[6], n[5]
	return n, fields[7], n[6] < 8
}

// member is an entry as its log holds it.
type member struct {
	at, total, units int64
	id, mark, run    string // mark: the code of the labels, or = and their line
	packed           bool
}

// parseMember reads a member of a log and its score (entry.lua), as much of them as can be read:
// at is negative, units and total are 0 where they cannot.
func parseMember(z redis.Z) (m member, err error) {
	text, _ := z.Member.(string)
	if m.at, err = parseScore(z.Score); err != nil {
		m.at = -1
	}
	if !m.unpack(text) {
		total, text, _ := strings.Cut(text, ":")
		units, text, _ := strings.Cut(text, ":")
		id, text, found := strings.Cut(text, ":")
		if !found {
			return m, errEntry
		}
		m.id = id
		m.mark, m.run, _ = strings.Cut(text, ":")
		m.total, m.units = parseUnits(total), parseUnits(units)
	}
	if err == nil && (m.units < 1 || m.units > m.total) {
		err = errEntry
	}
	return m, err
}

// parseUnits reads units or a total, 0 where it cannot.
func parseUnits(text string) int64 {
	if n, err := parseWhole(text); err == nil && n <= quota.MaxTotal {
		return n
	}
	return 0
}

// parseMembers reads entries of which every one must be sound.
func parseMembers(credential, bucket string, list []redis.Z) ([]member, error) {
	members := make([]member, len(list))
	for i, z := range list {
		var err error
		if members[i], err = parseMember(z); err != nil {
			return nil, damaged(credential, bucket, err)
		}
	}
	return members, nil
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

// String is the member as it is kept.
func (m member) String() string {
	if m.packed {
		if text, ok := m.repack(); ok {
			return text
		}
	}
	text := fmt.Sprintf("%d:%d:%s:%s", m.total, m.units, m.id, m.mark)
	if m.run != "" {
		text += ":" + m.run
	}
	return text
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
