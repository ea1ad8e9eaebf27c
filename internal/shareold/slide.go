package share

import "time"

// Shortest is the shortest sliding window that is shared. What a shorter one denies fits again soon.
const Shortest = 6 * time.Hour

// Horizons is at how many moments a window that slides is looked at.
const Horizons = 12

// Soon is what counts as free already: the charges of a run are a little apart, and so are those that leave the window a day later.
const Soon = time.Second

// Stretch is what one limit leaves until some moment, and what is wanted until then; both in units.
type Stretch struct{ Left, Wanted int64 }

// Shorter says whether less of what is wanted can be served than in o. Negative figures count as 0.
func (s Stretch) Shorter(o Stretch) bool {
	return !atMost(max(o.Left, 0), max(s.Wanted, 0), max(s.Left, 0), max(o.Wanted, 0), true)
}

// Overrules says whether s, of a window that slides, decides rather than o, of a day. It must be shorter by a sixteenth: in a day
// that follows others like it both are alike, and the day's line spreads more evenly.
func (s Stretch) Overrules(o Stretch) bool {
	return Stretch{s.Left + max(s.Left, 0)/16, s.Wanted}.Shorter(o)
}

// Number is the number of a lane's present tick, for windows that slide: it goes on from one of the upstream's days to the next, be it
// that a day has but one. start is that of the day, which has ofDay ticks; had is how many of them have been.
func Number(start time.Time, ofDay, had int64) int64 {
	return start.Add(12*time.Hour).Unix()/(24*60*60)*ofDay + had + 1
}

// Horizon is moment i, from 1 to Horizons, of those that are looked at from now on: they are spread over one length of the window.
// At each, what of the present entries will still be inside, and what the ticks until then want, say how much of that can be
// served; the moment at which that is least is the end of the Day to be shared.
//
// Worked example: 100 units in any 24 h; 90 were spent between 08:00 and 20:00 yesterday, and it is midnight.
//
//	until 08:00    10 units are free for the ticks of eight hours
//	until 20:00    100 for those of twenty, and until midnight no more than that
//
// All times are Unix microseconds. The last moment is before what is spent now leaves the window again. The moments lie half a
// second before a full minute, where neither ticks nor entries of ticks lie.
func Horizon(now, length int64, i int) int64 {
	const minute = int64(time.Minute / time.Microsecond)
	const before = int64(500 * time.Millisecond / time.Microsecond)
	return now - now%minute - before + length/Horizons*int64(i)
}
