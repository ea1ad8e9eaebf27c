package forecast

import "math"

// Some spending follows the hours of the day: people at work, a job that begins at two. Whether it
// does is not configured but tried: the hours of the last day are foretold from the hours just
// before them, and from the same hours of the day before.

const (
	dayHours = 24
	dayBins  = dayHours * hour
	// lead is how many hours ahead is foretold in the trial. It needs as many hours to be worth
	// anything.
	lead = 12
	// lately is the hours that tell how today compares with the day before.
	lately = 6
	// doubt is how much likelier it is, before the trial, that the hour of the day says nothing.
	doubt = 100
	// cautious is the hours as they are on the average that are counted on both sides of a
	// comparison, so that few say little.
	cautious = 3
)

// byClock is how likely it is that spending follows the hours of the day. The day before must beat
// short memories and long ones.
func (h *habit) byClock() float64 {
	least := 1.0
	means := h.hourly()
	for _, half := range []float64{2, 8, 48} {
		least = min(least, h.beats(half, means))
	}
	return least
}

// beats is how likely the day before tells more than the hours before, by a memory with a half-life
// in hours. Roots are compared, so that busy hours count no more than others, and no hour may say
// much by being foretold exactly.
func (h *habit) beats(half float64, means []float64) float64 {
	var ours, theirs, n [dayHours]float64
	for o := 1; o <= dayHours && o < len(means); o++ {
		flat, level := remember(means[o:], half), ratio(means, o)
		for j := max(0, o-lead); j < o; j++ {
			if before := dayBefore(means, j); means[j] >= 0 && before >= 0 && flat >= 0 {
				was := math.Sqrt(means[j])
				ours[j] += math.Pow(was-math.Sqrt(level*before), 2)
				theirs[j] += math.Pow(was-math.Sqrt(flat), 2)
				n[j]++
			}
		}
	}
	noise := h.grain(h.seen()) / (4 * float64(hour))
	odds, tried := 1.0/doubt, 0
	for j := range n {
		if n[j] > 0 {
			odds *= math.Sqrt((noise + theirs[j]/n[j]) / (noise + ours[j]/n[j]))
			tried++
		}
	}
	if tried < lead {
		return 0
	}
	return odds / (1 + odds)
}

// seen are the bins that are not blind.
func (h *habit) seen() (bins []int) {
	for i, blind := range h.blind {
		if !blind {
			bins = append(bins, i)
		}
	}
	return bins
}

// hourly is the mean of the bins of each hour back from now, and -1 where most of them are blind.
func (h *habit) hourly() []float64 {
	means := make([]float64, len(h.units)/hour)
	for j := range means {
		sum, n := 0.0, 0
		for i := j * hour; i < (j+1)*hour; i++ {
			if !h.blind[i] {
				sum, n = sum+h.units[i], n+1
			}
		}
		means[j] = -1
		if n > hour/2 {
			means[j] = sum / float64(n)
		}
	}
	return means
}

// remember is the mean of hours, the first counting most; -1 when none was seen.
func remember(means []float64, half float64) float64 {
	sum, weight := 0.0, 0.0
	for j, m := range means {
		if m >= 0 {
			f := math.Exp2(-float64(j) / half)
			sum, weight = sum+f*m, weight+f
		}
	}
	if weight == 0 {
		return -1
	}
	return sum / weight
}

// dayBefore is what the hour j was like on the day before, or -1.
func dayBefore(means []float64, j int) float64 {
	sum, n := 0.0, 0.0
	for k, w := range [...]float64{1, 2, 1} {
		if i := j + dayHours - 1 + k; i < len(means) && means[i] >= 0 {
			sum, n = sum+w*means[i], n+w
		}
	}
	if n == 0 {
		return -1
	}
	return sum / n
}

// ratio is how the hours from o on compare with the day before.
func ratio(means []float64, o int) float64 {
	now := cautious * max(0, remember(means, math.Inf(1)))
	if now == 0 {
		return 1
	}
	then := now
	for j := o; j < min(o+lately, len(means)); j++ {
		if before := dayBefore(means, j); means[j] >= 0 && before >= 0 {
			now, then = now+means[j], then+before
		}
	}
	return now / then
}

// compare finds the level of today, and how sure it is.
func (d *dice) compare() {
	means := d.hourly()
	d.level = ratio(means, 0)
	charges := cautious * max(0, remember(means, math.Inf(1)))
	for _, m := range means[:min(lately, len(means))] {
		charges += max(0, m)
	}
	d.levelSure = max(0.5, charges*float64(hour)/d.grain)
}

// usualAt is what is usual at the hour of the bin i, by the days before and after; 0 where the hour
// says nothing.
func (h *habit) usualAt(i int) float64 {
	if h.clock < 0.5 {
		return 0
	}
	most := 0.0
	for _, other := range []int{i + dayBins, i - dayBins} {
		sum, n := 0.0, 0.0
		for j := max(0, other-hour/2); j <= other+hour/2 && j < len(h.units); j++ {
			if !h.blind[j] {
				sum, n = sum+h.units[j], n+1
			}
		}
		most = max(most, sum/max(1, n))
	}
	return most
}

// sameHour is a bin of one of the two days before, of about the same hour as the bin i to come; -1
// when none was seen.
func (d *dice) sameHour(i int, part float64) int {
	near := int(math.Mod(2*part, 1)*float64(hour+1)) - hour/2
	for back := range 2 {
		day := 1 + (back+int(2*part))%2
		j := day*dayBins - 1 - i%dayBins + near
		if j >= d.surge && j < len(d.units) && !d.blind[j] {
			return j
		}
	}
	return -1
}
