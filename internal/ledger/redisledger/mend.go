package redisledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// checked is what a check has found, and what the bucket must become.
type checked struct {
	stored
	findings  []quota.Finding
	becomes   state
	heldUntil int64
	gone      []any // members
	come      []any // score and member of each
	settled   []any // fields of reservations that go
}

// maxMended is how many entries are written anew at most: a few tenths of a second in which the
// server answers nobody else.
const maxMended = 100_000

// unread stands for the labels of an entry that cannot be read.
const unread = "=labels_lost=unread"

func (c *checked) found(what, repair string, mends bool) {
	c.findings = append(c.findings, quota.Finding{What: what, Repair: repair, Mends: mends})
}

func (c *checked) mends() bool {
	return slices.ContainsFunc(c.findings, func(f quota.Finding) bool { return f.Mends })
}

// hold holds what was read against itself.
func (l *Ledger) hold(ctx context.Context, s stored) (checked, error) {
	c := checked{stored: s}
	was, known := parseState(s.state)
	if s.hasState && !known {
		c.found(
			fmt.Sprintf("its state of %d bytes cannot be read", len(s.state)),
			"it is rebuilt from its entries and reservations; if the bucket was suspended, it is open again",
			true,
		)
	}
	if c.becomes = was; !known {
		c.becomes = state{keep: quota.Retention.Microseconds()}
	}
	c.holdReservations(known)
	codes := c.holdEntries(known)
	err := l.holdLabels(ctx, &c, codes)
	for i := range c.findings {
		c.findings[i].Bucket = s.bucket
	}
	return c, err
}

// holdReservations holds the reservations against their list by expiry, and both against the state.
func (c *checked) holdReservations(known bool) {
	unread := make(map[string]bool)
	listed := make(map[redis.Z]bool) // as it must be
	for field, value := range c.reservations {
		id, ok := strings.CutPrefix(field, "r:")
		if !ok {
			continue
		}
		r, err := parseReservation(c.bucket, id, value)
		if err != nil {
			unread[id] = true
			c.settled = append(c.settled, field)
			c.found(
				err.Error(),
				"it is removed: how much it holds is unknown, and it will hold nothing",
				true,
			)
			continue
		}
		listed[listing(id, r)] = true
		c.heldUntil = max(c.heldUntil, r.ExpiresAt.UnixMicro())
		if !known { // nothing is decided at an earlier time
			c.becomes.newest = max(c.becomes.newest, r.CreatedAt.UnixMicro()-1)
		}
	}
	if !known || !c.becomes.listed {
		return
	}
	var held int64
	wrong := 0
	for _, z := range c.holds {
		units, id, _ := strings.Cut(z.Member.(string), ":")
		n, err := parseWhole(units)
		if held += n; err != nil || !listed[z] && !unread[id] {
			wrong++
		}
		delete(listed, z)
	}
	if wrong += len(listed); wrong > 0 {
		c.found(
			fmt.Sprintf("%d reservations are not listed by expiry with what they hold", wrong),
			"the list is written again from the reservations",
			true,
		)
	}
	if n := int64(len(c.holds)); c.becomes.holds != n || c.becomes.held != held {
		c.found(
			fmt.Sprintf("its state counts %d reservations that hold %d units, and there are %d that hold %d",
				c.becomes.holds, c.becomes.held, n, held),
			"they are counted again",
			true,
		)
	}
}

// listing is a reservation as it is listed by expiry (bucket.lua).
func listing(id string, r quota.Reservation) redis.Z {
	z := redis.Z{Score: float64(r.ExpiresAt.UnixMicro()), Member: fmt.Sprintf("%d:%s", r.Left, id)}
	if r.Left == 0 {
		z.Score = -z.Score
	}
	return z
}

// holdEntries holds the entries against the state, and counts how many need the line of each code.
func (c *checked) holdEntries(known bool) (codes map[string]int) {
	b := quota.Books{
		Total:  c.becomes.total,
		Newest: c.becomes.newest,
		Known:  known,
		Now:    c.now.UnixMicro(),
		Keep:   c.becomes.keep,
	}
	var sums quota.Tally
	tails, labels := make([]string, len(c.members)), make([]mark, len(c.members))
	b.Lines = make([]quota.Line, len(c.members))
	for i, z := range c.members {
		b.Lines[i], tails[i], labels[i] = parseLine(z)
	}
	m := b.Mend()
	c.findings = append(c.findings, m.Findings...)
	c.becomes.total, c.becomes.newest = m.Total, max(m.Newest, c.becomes.newest)
	codes = make(map[string]int)
	illegible := 0
	for i, line := range m.Lines {
		if line.Left {
			continue
		}
		tail := tails[i]
		switch {
		case b.Lines[i].Units == 0: // nothing of it can be relied on
			tail = quota.NewID(c.now) + ":" + unread
		case labels[i].bad:
			illegible++
			id, _, _ := strings.Cut(tail, ":")
			tail = id + ":" + unread
		case labels[i].code != "":
			codes[labels[i].code]++
		}
		c.write(i, line, tail)
		if line.At <= c.sums.upto && line.Units > 0 {
			sums.Add(line.At, markOf(tail), line.Units, 1)
		}
	}
	if f, differ := c.holdSums(sums); differ {
		c.findings = append(c.findings, f)
	}
	if illegible > 0 {
		c.found(
			fmt.Sprintf("the labels of %d entries cannot be read", illegible),
			"they are marked as lost; the units count all the same",
			true,
		)
	}
	return codes
}

// holdSums holds the sums against those of the entries that are in them. A repair of anything else
// drops them, so they are not looked at then. Of the oldest ten minutes, some may have been
// trimmed.
func (c *checked) holdSums(sums quota.Tally) (quota.Finding, bool) {
	if len(c.members) == 0 || c.mends() || !c.sums.follow(c.members) {
		return quota.Finding{}, false
	}
	oldest := int64(c.members[0].Score)
	c.sums.tally.DropZero()
	c.sums.tally.DropBefore(oldest)
	if c.sums.tally.In(oldest) > sums.In(oldest) {
		c.sums.tally.Drop(oldest)
		sums.Drop(oldest)
	}
	return sums.Differs(c.sums.tally)
}

// write notes what becomes of a member, if that is anything else.
func (c *checked) write(i int, line quota.Line, tail string) {
	old := c.members[i]
	if line.Units == 0 {
		c.gone = append(c.gone, old.Member)
		return
	}
	becomes := formatMember(line, tail)
	if becomes != old.Member || float64(line.At) != old.Score {
		c.gone = append(c.gone, old.Member)
		c.come = append(c.come, line.At, becomes)
	}
}

// holdLabels looks for the lines of the codes.
func (l *Ledger) holdLabels(ctx context.Context, c *checked, codes map[string]int) error {
	lost := 0
	var asked []string
	for code := range codes {
		asked = append(asked, code)
	}
	for some := range slices.Chunk(asked, readAtOnce) {
		lines, err := l.client.HMGet(ctx, labelsKey(c.credential), some...).Result()
		if err != nil {
			return explain(err)
		}
		for i, code := range some {
			if line, ok := lines[i].(string); !ok {
				lost += codes[code]
			} else if _, err := quota.ParseLabels(line); err != nil {
				lost += codes[code]
			}
		}
	}
	if lost > 0 {
		c.found(
			fmt.Sprintf("the labels of %d entries are lost", lost),
			"none: their units count all the same. A program that charges with the same labels puts them back",
			false,
		)
	}
	forEver := c.logTTL == -1
	if c.labelsTTL >= 0 && len(codes) > 0 && (forEver || c.logTTL > c.labelsTTL+time.Second) {
		c.found(
			"its labels lapse before the entries that name them",
			"they last as long as the entries",
			true,
		)
	}
	return nil
}

// mendBucket writes what the bucket must be, in one script; false when it has changed since it was
// read.
func (l *Ledger) mendBucket(ctx context.Context, c checked) (bool, error) {
	if len(c.gone) > maxMended {
		return false, fmt.Errorf(
			"%w: bucket %s of %s: a repair would write %d entries, and may write at most %d, because it "+
				"blocks the server: delete those older than every window first",
			quota.ErrLedgerUnusable,
			c.bucket,
			c.credential,
			len(c.gone),
			maxMended,
		)
	}
	s := c.becomes
	n := numbers{
		s.total,
		s.newest,
		s.suspended,
		s.keep,
		s.expire,
		c.heldUntil,
		int64(len(c.members)),
		int64(len(c.gone)),
		int64(len(c.come) / 2),
		int64(len(c.settled)),
	}
	keys := append([]string{labelsKey(c.credential)}, bucketKeys(c.credential, c.bucket)...)
	keys = append(keys, sumsKey(c.credential, c.bucket))
	args := slices.Concat([]any{n.blob(), c.state}, c.gone, c.come, c.settled)
	done, err := l.mend.Run(ctx, l.client, keys, args...).Int64()
	return done == 1, explain(err)
}
