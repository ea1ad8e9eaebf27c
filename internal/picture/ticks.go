package picture

import "time"

type tick struct {
	at    time.Time
	label string
}

const mostTicks = 9

// ticks returns the ticks, at full hours or days of UTC.
func ticks(from, to time.Time) (found []tick) {
	const day = 24 * time.Hour
	var step time.Duration
	for _, step = range []time.Duration{time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		day, 2 * day, 7 * day, 14 * day, 30 * day, 60 * day, 365 * day} {
		if to.Sub(from)/step < mostTicks {
			break
		}
	}
	form := "2006-01-02"
	if step < day {
		form = "01-02 15:04Z"
	}
	seconds := int64(step / time.Second)
	for at := (from.Unix() + seconds - 1) / seconds * seconds; at <= to.Unix(); at += seconds {
		moment := time.Unix(at, 0).UTC()
		found = append(found, tick{moment, moment.Format(form)})
	}
	return found
}
