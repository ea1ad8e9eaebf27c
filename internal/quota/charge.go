package quota

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// keyScope returns the name of the answer to an idempotency key, "" for none.
func keyScope(key string) string {
	if key == "" {
		return ""
	}
	return "key " + key
}

// settledScope returns the name of the answer to the settlement of a reservation.
func settledScope(reservation string) string { return "settled " + reservation }

// requestText returns the text for comparing requests under one idempotency key: verb, sorted costs
// and reservation.
func requestText(verb string, costs []Cost, reservation string) string {
	words := make([]string, len(costs))
	for i, c := range costs {
		words[i] = c.Bucket + "=" + strconv.FormatInt(c.Units, 10)
		if c.Most != 0 {
			words[i] += "-" + strconv.FormatInt(c.Most, 10)
		}
	}
	slices.Sort(words)
	return strings.TrimSpace(verb + " " + strings.Join(words, " ") + " " + reservation)
}

// inWords describes a request for people, without the buckets of labels.
func inWords(request string) string {
	verb, rest, _ := strings.Cut(request, " ")
	var parts []string
	bound := "after "
	for _, word := range strings.Fields(rest) {
		bucket, units, isCost := strings.Cut(word, "=")
		micros, err := strconv.ParseInt(word, 10, 64)
		switch {
		case verb == "adjust" && err == nil: // the bounds of a correction
			if micros < MaxTotal { // MaxTotal is the end of an open span
				parts = append(parts, bound+time.UnixMicro(micros).UTC().Format(time.RFC3339))
			}
			bound = "until "
		case !isCost:
			parts = append(parts, "from "+word) // a reservation
		case units == strconv.Itoa(AllUnits):
			parts = append(parts, "all of "+bucket)
		case !IsLabelBucket(word):
			parts = append(parts, units+" of "+bucket)
		}
	}
	return verb + " " + strings.Join(parts, ", ")
}

// settledError is the ErrKeyReused of a settlement, whose caller gave no key.
type settledError struct{ text string }

func (e *settledError) Error() string { return e.text }

func (e *settledError) Unwrap() error { return ErrKeyReused }

// recall returns the stored answer to the same request, and whether there is one.
func (a *Account) recall(key, request string) (d Decision, known bool, err error) {
	was := a.Answer
	if key == "" || was == nil || a.Now >= was.Expires {
		return d, false, nil
	}
	switch {
	case was.Request == request:
	case strings.HasPrefix(was.Request, "settle "):
		_, costs, _ := strings.Cut(inWords(was.Request), " ")
		return d, true, &settledError{fmt.Sprintf("%s is already settled with %s", key, costs)}
	default:
		sent := strconv.Quote(inWords(request))
		if inWords(was.Request) == inWords(request) {
			sent = "another value of a label that has limits"
		}
		return d, true, fmt.Errorf("%q was used for %q, and is now sent with %s: %w", key,
			inWords(was.Request), sent, ErrKeyReused)
	}
	err = json.Unmarshal([]byte(was.Decision), &d)
	if err != nil || !d.Allowed || d.At.IsZero() || len(d.Units) == 0 {
		return Decision{}, true, fmt.Errorf("%w: the answer kept for %q is damaged: "+
			"see what was charged (quotactl log), then delete its row in answers",
			ErrLedgerUnusable, key)
	}
	d.Replayed = true
	return d, true, nil
}

// keep stores a decision as the answer to a request, unless the name is empty. An answer lasts as
// long as entries under the limits.
func (a *Account) keep(name, request string, d Decision, limits []Limit) {
	if name == "" {
		return
	}
	text, err := json.Marshal(d)
	if err != nil { // it has only texts, numbers and times
		panic(err)
	}
	a.change.Keep = &Answer{Name: name, Request: request, Decision: string(text),
		Expires: a.Now + RetentionFor(limits).Microseconds()}
}

// Charge decides on a charge: see Ledger.Charge.
func (a *Account) Charge(c Charge) (d Decision, err error) {
	request := requestText("charge", c.Costs, c.Reservation)
	if d, known, err := a.recall(c.Key, request); known {
		return d, err
	}
	a.decide()
	if err := a.checkNew(); err != nil && !c.NewValues {
		return d, err
	}
	asks := a.asks(c.Costs, InMode(c.Limits, c.Observe))
	for i := range asks {
		q := &asks[i]
		q.manual, q.draws = c.Manual, c.Draws(q.Name)
		if !q.draws {
			continue
		}
		h, err := q.find(c.Reservation, a.n)
		if err == nil && q.units > h.Left() {
			err = fmt.Errorf("%s: %d units asked for, %d left: %w", c.Reservation, q.units, h.Left(),
				ErrReservationShort)
		}
		if err != nil {
			return d, err
		}
	}
	if err := c.CheckCost(); err != nil {
		return Refused(c.Costs, err)
	}
	d = a.decision(asks, c.Observe)
	if err := a.err(); err != nil || !d.Allowed || c.DryRun {
		return d, err
	}
	if err := a.lapse(); err != nil {
		return d, err
	}
	labels := c.Labels
	if d.Observed { // the label distinguishes the entry
		labels = labels.With(Labels{LabelDenied: d.Limit})
	}
	line := labels.Encode()
	for _, q := range asks {
		e := edit{Bucket: q.Bucket, n: a.n}
		e.append(LogEntry{At: a.n, ID: c.ID, Units: q.units, Labels: line})
		e.dropExpired(a.n)
		if q.draws {
			h, _ := q.find(c.Reservation, a.n)
			h.Drawn += q.units
			e.Put = append(e.Put, h)
		}
		ch := e.done(c.Limits)
		ch.Keep = a.n - e.keeps(&ch)
		a.write(ch)
	}
	d.Entry = c.ID
	a.keep(keyScope(c.Key), request, d, c.Limits)
	return d, a.err()
}

// keeps returns how long entries are kept once the change is written, in µs.
func (b *Bucket) keeps(ch *BucketChange) int64 {
	keep := b.State.Keep
	if ch.State != nil {
		keep = ch.State.Keep
	}
	return max(keep, Retention.Microseconds())
}

// dropExpired removes holds that no longer set anything aside: at most 256, so that the change
// stays small. Later changes remove the others.
func (e *edit) dropExpired(n int64) {
	for i := range e.Holds {
		if h := &e.Holds[i]; !isOpen(h, n) && !h.charges() && len(e.Drop) < 256 {
			e.Drop = append(e.Drop, h.ID)
		}
	}
}

// Hold decides on a reservation: see Ledger.Reserve.
func (a *Account) Hold(r Reserve) (d Decision, err error) {
	request := requestText("reserve", r.Costs, "")
	if d, known, err := a.recall(r.Key, request); known {
		return d, err
	}
	a.decide()
	if err := a.checkNew(); err != nil && !r.NewValues {
		return d, err
	}
	if err := r.CheckCost(); err != nil {
		return Refused(r.Costs, err)
	}
	asks := a.asks(r.Costs, InMode(r.Limits, r.Observe))
	for i := range asks {
		asks[i].manual, asks[i].reserves = r.Manual, true
		asks[i].tooLow = r.TooLow(r.Costs[i])
	}
	d = a.decision(asks, r.Observe)
	if err := a.err(); err != nil || !d.Allowed {
		return d, err
	}
	for _, b := range a.Buckets {
		if _, err := b.find(r.ID, a.n); err == nil {
			return Decision{}, fmt.Errorf("%s already exists: %w", r.ID, ErrKeyReused)
		}
	}
	if err := a.lapse(); err != nil {
		return d, err
	}
	expires := a.n + r.TTL.Microseconds()
	d.Reservation, d.ExpiresAt = r.ID, StampTime(expires)
	for i, b := range a.Buckets {
		h := Hold{ID: r.ID, Units: r.Costs[i].Units, Most: r.Costs[i].Most, Created: a.n,
			Expires: expires, Lapse: r.LapseOf(b.Name), Manual: r.Manual, Note: r.Note,
			Labels: r.Labels.Encode()}
		e := edit{Bucket: b, n: a.n}
		e.dropExpired(a.n)
		e.Drop = slices.DeleteFunc(e.Drop, func(id string) bool { return id == r.ID })
		e.Put = append(e.Put, h)
		a.write(e.done(r.Limits))
	}
	a.keep(keyScope(r.Key), request, d, r.Limits)
	return d, a.err()
}
