package quota

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Denial counts the charges that one limit denied in one hour under one set of labels.
type Denial struct {
	Hour   time.Time // its beginning, by the ledger's clock
	Bucket string    // of the limit
	Limit  string    // as Decision.Limit
	Labels Labels    // without the run
	Count  int64
	Units  int64 // requested of the bucket
	LastAt time.Time
}

// DenialTime is how long a ledger keeps denials.
const DenialTime = 8 * 24 * time.Hour

// MaxDenials is the maximum number of rows that a process collects between two writes, and that a
// ledger keeps for a credential and day. Further denials are counted without their labels.
const MaxDenials = 2000

// DenialCounter collects the denials of one process and writes them at most once a second, and when
// the ledger is closed. No charge waits for that. Rows that cannot be written are lost.
type DenialCounter struct {
	// Write adds denials to those that the ledger keeps for a credential.
	Write func(ctx context.Context, credential string, denials []Denial) error

	mu      sync.Mutex
	rows    map[denialKey]*Denial
	due     *time.Timer // nil while there is nothing to write
	writing sync.Mutex  // while rows are written
}

type denialKey struct{ credential, hour, bucket, limit, labels string }

// Denied counts a denial.
func (d *DenialCounter) Denied(credential string, denial Denial) {
	denial.Labels = denial.Labels.With(nil).WithoutRun()
	denial.Hour = denial.LastAt.UTC().Truncate(time.Hour)
	key := denialKey{credential, denial.Hour.Format(time.RFC3339), denial.Bucket, denial.Limit,
		denial.Labels.Encode()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows == nil {
		d.rows = make(map[denialKey]*Denial)
	}
	if d.rows[key] == nil && len(d.rows) >= MaxDenials {
		denial.Labels, key.labels = nil, ""
	}
	if row := d.rows[key]; row != nil {
		denial.Count, denial.Units = denial.Count+row.Count, min(denial.Units+row.Units, MaxUnits)
	}
	d.rows[key] = &denial
	if d.due == nil {
		d.due = time.AfterFunc(time.Second, func() { d.Flush(10 * time.Second) })
	}
}

// Flush writes the collected rows.
func (d *DenialCounter) Flush(patience time.Duration) {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	rows := d.rows
	d.rows = nil
	if d.due != nil {
		d.due.Stop()
		d.due = nil
	}
	d.mu.Unlock()
	by := make(map[string][]Denial)
	for key, row := range rows {
		by[key.credential] = append(by[key.credential], *row)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for credential, denials := range by {
		_ = d.Write(ctx, credential, denials) // an error loses counts, which no decision reads
	}
}

// countDenial counts a denied charge in the bucket of the limit, or in the first denied bucket if
// the limit names none, such as a suspension.
func (b *Budget) countDenial(c Charge, d Decision) {
	bucket := cmp.Or(c.Costs[0].Bucket, DefaultBucket)
	denied := func(c Cost) bool { return d.Units[c.Bucket] > 0 }
	if i := slices.IndexFunc(c.Costs, denied); i >= 0 {
		bucket = c.Costs[i].Bucket
	}
	denies := func(l Limit) bool { return l.Name() == d.Limit && l.Pace == nil }
	if i := slices.IndexFunc(c.Limits, denies); i >= 0 {
		bucket = c.Limits[i].Bucket
	}
	b.Ledger.Denied(b.Credential, Denial{Bucket: bucket, Limit: d.Limit, Labels: c.Labels,
		Count: 1, Units: min(d.Units[bucket], MaxUnits), LastAt: d.At})
}

// ForgetDenials returns the time before which a ledger forgets denials when it adds these.
func ForgetDenials(denials []Denial) (before time.Time) {
	for _, d := range denials {
		if at := d.LastAt.Add(-DenialTime); at.After(before) {
			before = at
		}
	}
	return before
}

// SortDenials orders denials by their hour, then by what denied them.
func SortDenials(all []Denial) {
	slices.SortFunc(all, func(a, b Denial) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Bucket, b.Bucket),
			cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Labels.Encode(), b.Labels.Encode()))
	})
}
