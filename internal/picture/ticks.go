package picture

import (
	"fmt"
	"time"

	"gonum.org/v1/plot"
)

// tens are the ticks of an axis in per cent, as far as there can be anything.
func tens(_, _ float64) (ticks []plot.Tick) {
	for percent := 0; percent <= 100; percent += 10 {
		tick := plot.Tick{Value: float64(percent)}
		if percent%50 == 0 {
			tick.Label = fmt.Sprint(percent)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// mostTicks is how many moments are written below the picture.
const mostTicks = 9

// days are ticks at full hours or days of UTC, from one Unix second to another.
func days(from, to float64) (ticks []plot.Tick) {
	const day = 24 * time.Hour
	step := time.Hour
	for _, step = range []time.Duration{time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 60 * day, 365 * day} {
		if (to-from)/step.Seconds() <= mostTicks {
			break
		}
	}
	form := "2006-01-02"
	if step < day {
		form = "01-02 15:04Z"
	}
	seconds := int64(step / time.Second)
	for at := (int64(from) + seconds - 1) / seconds * seconds; float64(at) <= to; at += seconds {
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: time.Unix(at, 0).UTC().Format(form)})
	}
	return ticks
}
