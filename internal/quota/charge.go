package quota

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// KeyScope returns the name of the answer to an idempotency key, "" for none.
func KeyScope(key string) string {
	if key == "" {
		return ""
	}
	return "key " + key
}

// SettledScope returns the name of the answer to the settlement of a reservation.
func SettledScope(reservation string) string { return "settled " + reservation }

// requestText returns the text by which requests under one idempotency key are compared: verb,
// sorted costs and reservation.
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

// inWords returns the text of a request for people, without the buckets of labels.
func inWords(request string) string {
	verb, rest, _ := strings.Cut(request, " ")
	var parts []string
	for _, word := range strings.Fields(rest) {
		bucket, units, isCost := strings.Cut(word, "=")
		switch {
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
		return d, true, fmt.Errorf("%q was used for %q, and is now sent with %q: %w", key,
			inWords(was.Request), inWords(request), ErrKeyReused)
	}
	err = json.Unmarshal([]byte(was.Decision), &d)
	if err != nil || !d.Allowed || d.At.IsZero() || len(d.Units) == 0 {
		return Decision{}, true, fmt.Errorf("%w: the answer kept for %q is damaged: "+
			"delete its row in answers, after a look at what was charged (quotactl log)",
			ErrLedgerUnusable, key)
	}
	d.Replayed = true
	return d, true, nil
}

// answer returns the stored form of a decision that expires at a time, nil without a name.
func answer(name, request string, d Decision, until int64) *Answer {
	if name == "" {
		return nil
	}
	text, err := json.Marshal(d)
	if err != nil { // it has only texts, numbers and times
		panic(err)
	}
	return &Answer{Name: name, Request: request, Decision: string(text), Expires: until}
}

// keepAnswer returns the time until which answers are stored under limits.
func (a *Account) keepAnswer(limits []Limit) int64 {
	return a.Now + RetentionFor(limits).Microseconds()
}

// Charge decides on a charge: see Ledger.Charge.
func (a *Account) Charge(c Charge) (d Decision, ch Change, err error) {
	request := requestText("charge", c.Costs, c.Reservation)
	if d, known, err := a.recall(c.Key, request); known {
		return d, ch, err
	}
	a.decide()
	if err := a.checkNew(); err != nil && !c.NewValues {
		return d, ch, err
	}
	asks := a.asks(c.Costs, InMode(c.Limits, c.Observe))
	for i := range asks {
		q := &asks[i]
		q.manual, q.draws = c.Manual, c.Draws(q.Name)
		if q.draws {
			if err := q.canDraw(c.Reservation, q.units, a.n); err != nil {
				return d, ch, err
			}
		}
	}
	if err := c.CheckCost(); err != nil {
		d, err = Refused(c.Costs, err)
		return d, ch, err
	}
	d = a.decision(asks, c.Observe)
	if err := a.err(); err != nil || !d.Allowed || c.DryRun {
		return d, ch, err
	}
	if a.due() {
		ch, err = a.lapse()
		return d, ch, err
	}
	labels := c.Labels
	if d.Observed { // the label distinguishes the entry
		labels = labels.With(Labels{LabelDenied: d.Limit})
	}
	line := labels.Encode()
	for _, q := range asks {
		ch.Buckets = append(ch.Buckets, a.charge(q, c, line))
	}
	d.Entry = c.ID
	ch.Keep = answer(KeyScope(c.Key), request, d, a.keepAnswer(c.Limits))
	return d, ch, a.err()
}

// charge returns the change of one bucket.
func (a *Account) charge(q ask, c Charge, labels string) BucketChange {
	e := edit{Bucket: q.Bucket, n: a.n}
	e.append(LogEntry{At: a.n, ID: c.ID, Units: q.units, Labels: labels})
	e.dropExpired(a.n)
	if q.draws {
		h, _ := q.find(c.Reservation, a.n)
		h.Drawn += q.units
		e.Put = append(e.Put, h)
	}
	ch := e.done(c.Limits)
	ch.Keep = a.n - e.keeps(&ch)
	return ch
}

// keeps returns for how many µs entries are kept once the change is written.
func (b *Bucket) keeps(ch *BucketChange) int64 {
	keep := b.State.Keep
	if ch.State != nil {
		keep = ch.State.Keep
	}
	return max(keep, Retention.Microseconds())
}

// maxDropped is how many expired holds a change removes.
const maxDropped = 256

// dropExpired removes holds that set nothing aside any more.
func (e *edit) dropExpired(n int64) {
	for i := range e.Holds {
		if h := &e.Holds[i]; !isOpen(h, n) && !h.charges() && len(e.Drop) < maxDropped {
			e.Drop = append(e.Drop, h.ID)
		}
	}
}

// canDraw reports why so many units cannot be drawn on the reservation.
func (b *Bucket) canDraw(reservation string, units, n int64) error {
	h, err := b.find(reservation, n)
	if err == nil && units > h.Left() {
		err = fmt.Errorf("%s: %d units asked for, %d left: %w", reservation, units, h.Left(),
			ErrReservationShort)
	}
	return err
}

// Hold decides on a reservation: see Ledger.Reserve.
func (a *Account) Hold(r Reserve) (d Decision, ch Change, err error) {
	request := requestText("reserve", r.Costs, "")
	if d, known, err := a.recall(r.Key, request); known {
		return d, ch, err
	}
	a.decide()
	if err := a.checkNew(); err != nil && !r.NewValues {
		return d, ch, err
	}
	if err := r.CheckCost(); err != nil {
		d, err = Refused(r.Costs, err)
		return d, ch, err
	}
	asks := a.asks(r.Costs, InMode(r.Limits, r.Observe))
	for i := range asks {
		asks[i].manual, asks[i].reserves = r.Manual, true
		asks[i].tooLow = r.TooLow(r.Costs[i])
	}
	d = a.decision(asks, r.Observe)
	if err := a.err(); err != nil || !d.Allowed {
		return d, ch, err
	}
	for _, b := range a.Buckets {
		if _, err := b.find(r.ID, a.n); err == nil {
			return Decision{}, ch, fmt.Errorf("%s already exists: %w", r.ID, ErrKeyReused)
		}
	}
	if a.due() {
		ch, err = a.lapse()
		return d, ch, err
	}
	expires := a.n + r.TTL.Microseconds()
	d.Reservation, d.ExpiresAt = r.ID, stampTime(expires)
	for i, b := range a.Buckets {
		h := Hold{ID: r.ID, Units: r.Costs[i].Units, Most: r.Costs[i].Most, Created: a.n,
			Expires: expires, Lapse: r.LapseOf(b.Name), Manual: r.Manual, Note: r.Note,
			Labels: r.Labels.Encode()}
		e := edit{Bucket: b, n: a.n}
		e.dropExpired(a.n)
		e.Drop = slices.DeleteFunc(e.Drop, func(id string) bool { return id == r.ID })
		e.Put = append(e.Put, h)
		ch.Buckets = append(ch.Buckets, e.done(r.Limits))
	}
	ch.Keep = answer(KeyScope(r.Key), request, d, a.keepAnswer(r.Limits))
	return d, ch, a.err()
}
