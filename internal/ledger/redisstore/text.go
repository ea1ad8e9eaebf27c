package redisstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/quota"
)

// memberText writes an entry as a member of the log: <total>:<units>:<id>:<labels>.
func memberText(e quota.LogEntry) string {
	return strconv.FormatInt(e.Total, 10) + ":" + strconv.FormatInt(e.Units, 10) + ":" + e.ID +
		":" + e.Labels
}

// parseEntry reads a member of the log and its stamp.
func parseEntry(member, stamp string) (e quota.LogEntry, err error) {
	parts := strings.SplitN(member, ":", 4)
	if len(parts) != 4 {
		return e, fmt.Errorf("%.64q is not an entry", member)
	}
	e.ID, e.Labels = parts[2], parts[3]
	var errs [3]error
	e.Total, errs[0] = strconv.ParseInt(parts[0], 10, 64)
	e.Units, errs[1] = strconv.ParseInt(parts[1], 10, 64)
	e.At, errs[2] = strconv.ParseInt(stamp, 10, 64)
	return e, errors.Join(errs[:]...)
}

// holdText writes a hold: units, most, drawn, created, expires, lapse, 1 if it is a person's,
// labels, note.
func holdText(h quota.Hold) string {
	manual := 0
	if h.Manual {
		manual = 1
	}
	return fmt.Sprintf("%d %d %d %d %d %s %d %s %s", h.Units, h.Most, h.Drawn, h.Created, h.Expires,
		h.Lapse, manual, h.Labels, h.Note)
}

// parseHold reads what holdText wrote.
func parseHold(id, text string) (quota.Hold, error) {
	h := quota.Hold{ID: id}
	for _, into := range []*int64{&h.Units, &h.Most, &h.Drawn, &h.Created, &h.Expires} {
		word, rest, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return h, err
		}
		*into, text = n, rest
	}
	parts := strings.SplitN(text, " ", 4)
	if len(parts) != 4 {
		return h, fmt.Errorf("%d words", len(parts))
	}
	h.Lapse, h.Manual, h.Labels, h.Note = quota.Lapse(parts[0]), parts[1] == "1", parts[2], parts[3]
	return h, nil
}

// stateText writes the state of a bucket:
//
//	<held> <from> <to> <keep> <revision> <the same five words> <JSON>
//
// charge.lua reads the words: the units of all holds, the times between which the log and these
// units suffice to decide a charge, and how long entries are kept, in µs. To reveal damage, the
// words are written twice, and the JSON has a digest of the state and the holds. The revision is
// random because a counter could repeat after a failover.
func stateText(b *quota.Bucket, revision string) string {
	var held, from int64
	to := int64(quota.MaxTotal) // the largest number that a script can represent
	if b.State.Floor != 0 {
		from = b.State.Floor + 1
	}
	from = max(0, from, b.State.SuspendedUntil)
	for _, h := range b.Holds {
		held += h.Left()
		from, to = max(from, h.Created), min(to, h.Expires)
	}
	if len(b.State.Others) > 0 || b.State.ResetAt != 0 {
		to = 0
	}
	text, err := json.Marshal(storedState{b.State, b.Recorded(), b.Digest()})
	if err != nil { // impossible: only texts and numbers
		panic(err)
	}
	words := fmt.Sprintf("%d %d %d %d %s", held, from, max(0, to), b.State.Keep, revision)
	return words + " " + words + " " + string(text)
}

// storedState is the JSON in a state.
type storedState struct {
	quota.State
	Recorded int64 `json:",omitzero"` // see quota.Bucket
	Digest   int64
}

func newRevision() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// parseState reads the state of the bucket. The caller compares it with what stateText writes.
func parseState(text string) (state storedState, revision string, err error) {
	parts := strings.SplitN(strings.TrimPrefix(text, underRepair), " ", 11)
	if len(parts) != 11 {
		return state, "", fmt.Errorf("%d words", len(parts))
	}
	err = json.Unmarshal([]byte(parts[10]), &state)
	return state, parts[4], err
}

// mark returns a part of the state that changes whenever the state does.
func mark(state string) string {
	text, _, _ := strings.Cut(state, "{")
	return text
}

// answerText writes a kept answer: <expires> <request>, a line feed, and the decision.
func answerText(a *quota.Answer) string {
	return fmt.Sprintf("%d %s\n%s", a.Expires, a.Request, a.Decision)
}

// parseAnswer reads what answerText wrote.
func parseAnswer(name, text string) (*quota.Answer, error) {
	expires, rest, _ := strings.Cut(text, " ")
	request, decision, found := strings.Cut(rest, "\n")
	at, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || !found {
		return nil, fmt.Errorf("%w: redis: the answer kept for %q is damaged: see what was "+
			"charged (quotactl log), then delete its key", quota.ErrLedgerUnusable, name)
	}
	return &quota.Answer{Name: name, Request: request, Decision: decision, Expires: at}, nil
}

// What a sum counts: calls, and units beyond one for each call. Most calls take one unit, so most
// charges change only one sum.
const (
	sumCalls  = "calls"
	sumBeyond = "beyond"
)

// sumField names a field of the sums of a day: "13:40 calls method=m".
func sumField(at int64, what, labels string) string {
	return quota.StampTime(at-mod(at, grain)).Format("15:04") + " " + what + " " + labels
}

// parseSum reads a field of the sums of a day.
func parseSum(dayStart int64, field, value string) (at int64, labels string, units, calls int64,
	err error) {
	clock, rest, _ := strings.Cut(field, " ")
	what, labels, _ := strings.Cut(rest, " ")
	begin, err := time.Parse("15:04", clock)
	if err != nil {
		return 0, "", 0, 0, err
	}
	if units, err = strconv.ParseInt(value, 10, 64); err != nil {
		return 0, "", 0, 0, err
	}
	at = dayStart + int64(60*begin.Hour()+begin.Minute())*60_000_000
	if what != sumCalls && what != sumBeyond || field != sumField(at, what, labels) {
		return 0, "", 0, 0, errors.New("not the name of a sum")
	}
	if what == sumCalls {
		calls = units
	}
	return at, labels, units, calls, nil
}
