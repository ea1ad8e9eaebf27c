package quota

import (
	"fmt"
	"time"
)

// Finding is something that is wrong with a bucket.
type Finding struct {
	Bucket string
	What   string // what is wrong
	Repair string // what a repair changes, or why there is none
	Mends  bool   // whether there is a repair
}

// Findings is the result of a check.
type Findings []Finding

// Add adds a finding; mends reports whether the repair changes anything.
func (f *Findings) Add(what, repair string, mends bool) {
	*f = append(*f, Finding{What: what, Repair: repair, Mends: mends})
}

// Illegible adds the number of entries whose labels cannot be read.
func (f *Findings) Illegible(entries int) {
	if entries > 0 {
		f.Add(fmt.Sprintf("the labels of %d entries cannot be read", entries),
			"they are marked as lost; the units count all the same", true)
	}
}

// Unread adds the number of notes of corrections that cannot be read.
func (f *Findings) Unread(takings int) {
	if takings > 0 {
		f.Add(fmt.Sprintf("%d notes of corrections cannot be read", takings),
			"they are removed: what they took off stays off", true)
	}
}

// Unheld adds a reservation whose units no repair can determine.
func (f *Findings) Unheld(what string) {
	f.Add(what, "it is removed: how much it holds is unknown, and it will hold nothing", true)
}

// In returns the findings with the name of the bucket.
func (f Findings) In(bucket string) []Finding {
	for i := range f {
		f[i].Bucket = bucket
	}
	return f
}

func utcText(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000000Z")
}
