package redisledger

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

// checked is what a check has found, and what the bucket must become.
type checked struct {
	quota.Findings
	stored
	becomes   state
	heldUntil int64
	gone      []any // members
	come      []any // score and member of each
	settled   []any // fields of reservations that go
}

// maxMended is how many entries a repair rewrites at most: a few tenths of a second in which the
// server answers nobody else.
const maxMended = 100_000

// unread stands for the labels of an entry that cannot be read.
const unread = "=labels_lost=unread"

// check reads a bucket and holds it against itself.
func (l *Ledger) check(ctx context.Context, credential, bucket string) (*checked, error) {
	s, err := l.read(ctx, credential, bucket)
	c := &checked{stored: s}
	if err != nil {
		return c, err
	}
	was, known := parseState(s.state)
	if s.hasState && !known {
		c.Add(fmt.Sprintf("its state of %d bytes cannot be read", len(s.state)),
			"it is rebuilt from its entries and reservations; a suspension is lost", true)
	}
	if c.becomes = was; !known {
		c.becomes = state{keep: quota.Retention.Microseconds()}
	}
	c.checkReservations(known)
	c.checkOthers()
	return c, l.checkLabels(ctx, c, c.checkEntries(known))
}

// checkOthers looks whether what others used can be read (bucket.lua).
func (c *checked) checkOthers() {
	text, readable := c.reservations[othersField], true
	for ; readable && len(text) > 0; text = text[min(lenOthers, len(text)):] {
		readable = len(text) >= lenOthers
		for i := 3; readable && i < 6; i++ {
			v := doubleAt(text, i)
			readable = v >= 0 && (v > 0 || i != 4) && (v <= quota.MaxTotal || i == 5)
		}
	}
	if !readable {
		c.Add("what others used cannot be read", "it is forgotten: the next response of the upstream "+
			"reports it again", true)
		c.settled = append(c.settled, othersField)
	}
}

// checkReservations holds the reservations against their list by expiry, and both against the
// state.
func (c *checked) checkReservations(known bool) {
	unread := make(map[string]bool)
	listed := make(map[redis.Z]bool) // as it must be
	var charges, extra int64
	next := int64(quota.MaxTotal)
	for field, value := range c.reservations {
		id, ok := strings.CutPrefix(field, "r:")
		if !ok {
			continue
		}
		r, err := parseHold(c.bucket, id, value)
		if err != nil {
			unread[id] = true
			c.settled = append(c.settled, field)
			c.Unheld(err.Error())
			continue
		}
		listed[listing(id, r)] = true
		next = min(next, r.ExpiresAt.UnixMicro())
		if r.Lapse == quota.LapseCharge {
			charges++
		}
		extra += r.Most - r.Units
		c.heldUntil = max(c.heldUntil, r.ExpiresAt.UnixMicro())
		if !known { // nothing is decided at an earlier time
			c.becomes.newest = max(c.becomes.newest, r.CreatedAt.UnixMicro()-1)
		}
	}
	if !known || c.becomes.earlier {
		return
	}
	if s := c.becomes; s.holds > 0 && (s.charges != charges || s.extra != extra || s.next > next) {
		c.Add(fmt.Sprintf("its state counts %d reservations that become entries, %d units that "+
			"estimates leave out, and none that expires before %d; these are %d, %d and %d",
			s.charges, s.extra, s.next, charges, extra, next), "they are counted again", true)
	}
	if c.becomes.listed && !c.keeper {
		c.Add("the list of reservations has lost the member that keeps it and its expiry",
			"it is written again", true)
	}
	var held int64
	wrong := 0
	for _, z := range c.holds {
		text := z.Member.(string)
		left, id := text[:min(lenLeft, len(text))], text[min(lenLeft+1, len(text)):]
		if held += bigEndian(left); !listed[z] && !unread[id] {
			wrong++
		}
		delete(listed, z)
	}
	if wrong += len(listed); wrong > 0 {
		c.Add(fmt.Sprintf("%d reservations are not listed by expiry with what they hold", wrong),
			"the list is written again from the reservations", true)
	}
	if n := int64(len(c.holds)); c.becomes.holds != n || c.becomes.held != held {
		c.Add(fmt.Sprintf("its state counts %d reservations that hold %d units, and there are "+
			"%d that hold %d", c.becomes.holds, c.becomes.held, n, held),
			"they are counted again", true)
	}
}

// listing is a reservation as it is listed by expiry (bucket.lua).
func listing(id string, r held) redis.Z {
	left := binary.BigEndian.AppendUint64(nil, uint64(r.Left))[8-lenLeft:]
	sign := ":"
	if r.flags > flagManual {
		sign = "+"
	}
	z := redis.Z{Score: float64(r.ExpiresAt.UnixMicro()), Member: string(left) + sign + id}
	if r.Left == 0 {
		z.Score = -z.Score
	}
	return z
}

// checkEntries holds the entries against the state, and counts how many need the line of each code.
func (c *checked) checkEntries(known bool) (codes map[string]int) {
	b := quota.Books{
		Total: c.becomes.total, Newest: c.becomes.newest, Known: known,
		Now: c.now.UnixMicro(), Keep: c.becomes.keep, Lines: make([]quota.Line, len(c.members)),
	}
	for i, z := range c.members {
		m, _ := parseMember(z)
		b.Lines[i] = quota.Line{At: max(0, m.at), NoTime: m.at < 0, Units: m.units, Total: m.total}
		if m.units > quota.MaxUnits {
			b.Lines[i].Units = 0
		}
	}
	m := b.Mend()
	c.Findings = append(c.Findings, m.Findings...)
	c.becomes.total, c.becomes.newest = m.Total, max(m.Newest, c.becomes.newest)
	var sums quota.Tally
	codes = make(map[string]int)
	illegible := 0
	for i, line := range m.Lines {
		if line.Left {
			continue
		}
		m, _ := parseMember(c.members[i])
		_, err := m.labels(strings.TrimPrefix(m.mark, "="))
		switch {
		case b.Lines[i].Units == 0: // nothing of it can be relied on
			m = member{id: quota.NewID(c.now), mark: unread}
		case err != nil:
			illegible++
			m.mark, m.run = unread, ""
		case m.mark != "" && m.mark[0] != '=':
			codes[m.mark]++
		}
		m.at, m.units, m.total = line.At, line.Units, line.Total
		c.write(c.members[i], m)
		if line.At <= c.sums.upto && line.Units > 0 {
			sums.Add(line.At, m.mark, line.Units, 1)
		}
	}
	c.checkSums(sums)
	c.checkStarts(b.Lines)
	c.Illegible(illegible)
	return codes
}

// checkSums holds the sums against those of the entries that are in them. A repair of anything else
// drops them, so they are not looked at then. Of the oldest ten minutes, some may have been
// trimmed.
func (c *checked) checkSums(sums quota.Tally) {
	if len(c.members) == 0 || c.Mends() || !c.sums.follow(c.members) {
		return
	}
	oldest := int64(c.members[0].Score)
	c.sums.tally.DropZero()
	c.sums.tally.DropBefore(oldest)
	if c.sums.tally.In(oldest) > sums.In(oldest) {
		c.sums.tally.Drop(oldest)
		sums.Drop(oldest)
	}
	c.Findings = append(c.Findings, sums.Differs(c.sums.tally)...)
}

// checkStarts holds what is known of where windows start against the entries. A repair of anything
// else forgets it, so it is not looked at then.
func (c *checked) checkStarts(lines []quota.Line) {
	if len(lines) == 0 || c.Mends() {
		return
	}
	before := func(from float64) float64 { // the total before the first entry at from or later
		i, _ := slices.BinarySearchFunc(lines, from, func(l quota.Line, from float64) int {
			return cmp.Compare(float64(l.At), from)
		})
		if i == len(lines) {
			return float64(c.becomes.total)
		}
		return float64(lines[i].Total - lines[i].Units)
	}
	for text := c.becomes.starts; len(text) >= lenStart; text = text[lenStart:] {
		since, total, first := doubleAt(text, 0), doubleAt(text, 1), doubleAt(text, 2)
		after, second, last := doubleAt(text, 3), doubleAt(text, 4), doubleAt(text, 5)
		if first <= float64(c.becomes.newest-c.becomes.keep) || since > second {
			continue // perhaps trimmed; of a window without entries
		}
		if before(since) != total || before(first) != total ||
			second > first && (before(first+1) != after || before(second) != after) ||
			last > after && before(second+1) != last {
			c.Add("its state has other totals where windows start than the entries",
				"it looks for them in the entries again", true)
			return
		}
	}
}

// write notes what becomes of a member, if that is anything else.
func (c *checked) write(old redis.Z, m member) {
	text := m.String()
	if m.units > 0 && text == old.Member && float64(m.at) == old.Score {
		return
	}
	c.gone = append(c.gone, old.Member)
	if m.units > 0 {
		c.come = append(c.come, m.at, text)
	}
}

// checkLabels looks for the lines of the codes.
func (l *Ledger) checkLabels(ctx context.Context, c *checked, codes map[string]int) error {
	lines, err := l.linesOf(ctx, c.credential, maps.Keys(codes))
	lost := 0
	for code, entries := range codes {
		line, ok := lines[code]
		if _, err := quota.ParseLabels(line); !ok || err != nil {
			lost += entries
		}
	}
	if lost > 0 {
		c.Add(fmt.Sprintf("the labels of %d entries are lost", lost), "none: their units count "+
			"all the same. A program that charges with the same labels puts them back", false)
	}
	forEver := c.logTTL == -1
	if c.labelsTTL >= 0 && len(codes) > 0 && (forEver || c.logTTL > c.labelsTTL+time.Second) {
		c.Add("its labels expire before the entries that name them",
			"they last as long as the entries", true)
	}
	return err
}

// mendBucket writes what the bucket must be, in one script; false when it has changed since it was
// read.
func (l *Ledger) mendBucket(ctx context.Context, c *checked) (bool, error) {
	if len(c.gone) > maxMended {
		return false, fmt.Errorf("%w: bucket %s of %s: a repair would write %d entries, and may "+
			"write at most %d, because it blocks the server: delete those older than every "+
			"window first", quota.ErrLedgerUnusable, c.bucket, c.credential, len(c.gone), maxMended)
	}
	s := c.becomes
	n := numbers{
		s.total, s.newest, s.suspended, s.keep, s.expire, c.heldUntil,
		int64(len(c.members)), int64(len(c.gone)), int64(len(c.come) / 2), int64(len(c.settled)),
	}
	keys := append(keysOf(c.credential, c.bucket), sumsKey(c.credential, c.bucket))
	args := slices.Concat([]any{n.blob(), c.state}, c.gone, c.come, c.settled)
	done, err := l.run1(ctx, "mend", keys, args...)
	return done == 1, err
}
