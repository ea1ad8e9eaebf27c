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

// Unread adds the number of notes of corrections that cannot be read.
func (f *Findings) Unread(takings int) {
	if takings > 0 {
		f.Add(fmt.Sprintf("%d notes of corrections cannot be read", takings),
			"they are removed: what they took off stays off", true)
	}
}

// repairedHold is how long a repair keeps a reservation at least.
const repairedHold = 24 * time.Hour

// replaceHolds replaces holds that are not what was written, or whose state is not. A repair never
// makes room: held units stay held for a day at least, and are charged then. Units that are missing
// from recorded, the units that all holds could take when they were written last, get a reservation
// of their own. unread is the number of holds that the store cannot read.
func (f *Findings) replaceHolds(b *Bucket, now, recorded int64, unread int) {
	var holds []Hold
	var units int64
	day := repairedHold.Microseconds()
	for _, h := range b.Holds {
		if h.Units < 1 || h.Drawn < 0 || h.Drawn > h.Units || h.AtMost() > MaxUnits {
			unread++
			continue
		}
		h.Created, h.Lapse = min(h.Created, now), LapseCharge
		h.Expires = min(max(h.Expires, now+day), now+MaxWindow.Microseconds())
		if _, err := ParseLabels(h.Labels); err != nil {
			h.Labels = ""
		}
		holds, units = append(holds, h), units+h.AtMost()
	}
	if missing := min(recorded-units, MaxUnits); missing > 0 {
		holds = append(holds, Hold{ID: ReservationID(NewID(stampTime(now)), b.Name), Units: missing,
			Created: now, Expires: now + day, Lapse: LapseCharge, Note: "lost reservations"})
		units += missing
	}
	b.Holds = holds
	f.Add(fmt.Sprintf("its reservations or its state are not what was written; %d reservations "+
		"cannot be read", unread), fmt.Sprintf("%d units stay held for at least a day and are "+
		"charged then, unless you settle or release them (quotactl reservations)", units), true)
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
