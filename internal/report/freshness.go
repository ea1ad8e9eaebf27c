package report

import (
	"slices"
	"time"
)

// ReadChart is one complete chart, as read by a sweep. Two charts are compared in the places that
// both have: a chart of 4 pages and one of 1, in the first page.
type ReadChart struct {
	At     time.Time // when it was complete
	Units  int64     // units that it took
	Places []string  // videos, the first place first; "" for none
}

// Freshness is how much the charts of a region differ from the charts before them.
type Freshness struct {
	Pairs   int           // number of pairs of consecutive charts; with 0 the fields below are 0
	Gap     time.Duration // between two charts, on average
	Moved   float64       // fraction of the compared places that hold another video
	New     float64       // fraction of the compared places whose video was in none before
	Units   int64         // spent on all charts but the first
	PerUnit float64       // new videos for each of those units
}

// CompareCharts measures the charts of a region, oldest first. It counts new videos, not places,
// because one new video at the top moves all videos below it.
func CompareCharts(charts []ReadChart) (f Freshness) {
	var moved, fresh, places float64
	for i := 1; i < len(charts); i++ {
		before, after := charts[i-1], charts[i]
		depth := min(len(before.Places), len(after.Places))
		if depth == 0 || !after.At.After(before.At) {
			continue
		}
		m, n := differ(before.Places[:depth], after.Places[:depth])
		f.Pairs++
		f.Units += after.Units
		f.Gap += after.At.Sub(before.At)
		moved, fresh, places = moved+m, fresh+n, places+float64(depth)
	}
	if f.Pairs == 0 {
		return f
	}
	f.Moved, f.New = moved/places, fresh/places
	f.PerUnit = fresh / max(1, float64(f.Units))
	f.Gap /= time.Duration(f.Pairs)
	return f
}

// differ counts the places that hold another video than before, and the videos that are new. Both
// charts have the same number of places.
func differ(before, after []string) (moved, fresh float64) {
	for i, v := range after {
		if before[i] != v {
			moved++
		}
		if v != "" && !slices.Contains(before, v) {
			fresh++
		}
	}
	return moved, fresh
}
