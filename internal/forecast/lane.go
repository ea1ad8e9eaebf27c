package forecast

import (
	"cmp"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// fresh is how old a chart that was cut off may be to be resumed: that of package ingest.
const fresh = 15 * time.Minute

// progress is how a lane stands in a day that is played.
type progress struct {
	served int64   // when it last got all that it wanted
	pages  int     // of the chart that was cut off; 0 for none
	begun  int64   // when its first page came
	done   int     // ticks since now
	at     []int64 // when it spent, and
	upto   []int64 // how much until and with then, since now
}

// wanted is how many pages of a chart are wanted at a moment.
func (p *progress) wanted(at int64, pages int) int {
	if at-p.begun > fresh.Microseconds() {
		p.pages = 0
	}
	return pages - p.pages
}

// done notes what a run has got, of the pages that it wanted.
func (w *walker) done(r *want, at int64, wanted, got int) {
	p := &w.lanes[r.lane]
	if p.pages == 0 {
		p.begun = at
	} else {
		w.cutOff--
	}
	if p.pages += got; got == wanted {
		p.served, p.pages = at, 0
	}
	if p.pages > 0 {
		w.cutOff++
	}
	p.done++
	w.wanted += int64(r.pages) * r.price
	if w.rations.Rations != nil {
		w.rations.Done(r.lane, int64(got)*r.price)
		w.rations.runs += int64(got) * r.price
	}
	if got > 0 {
		p.spend(at, int64(got)*r.price)
	}
}

func (p *progress) spend(at, units int64) {
	n := len(p.at)
	switch {
	case n == 0:
		p.at, p.upto = append(p.at, at), append(p.upto, units)
	case p.at[n-1] == at:
		p.upto[n-1] += units
	default:
		p.at, p.upto = append(p.at, at), append(p.upto, p.upto[n-1]+units)
	}
}

// allDone notes that all runs of a point have got what they wanted. Most days are never short, and need not know of each run.
func (w *walker) allDone(p *point) {
	if w.plain {
		w.wanted += p.asked
		return
	}
	for i := range p.runs {
		r := &p.runs[i]
		w.done(r, p.at, r.pages, r.pages)
	}
}

// recall notes the runs before point i, where it has not been done yet.
func (w *walker) recall(i int) {
	if !w.plain {
		return
	}
	w.plain, w.wanted = false, 0
	for j := range i {
		w.allDone(&w.points[j])
	}
}

// spentBy is what a lane has spent after a moment.
func (w *walker) spentBy(lane int, after int64) int64 {
	p, units := &w.lanes[lane], w.laneLogs[lane].after(after)
	if len(p.upto) == 0 {
		return units
	}
	units += p.upto[len(p.upto)-1]
	if n, _ := slices.BinarySearch(p.at, after+1); n > 0 {
		units -= p.upto[n-1]
	}
	return units
}

// unpaced reports whether a lane has not had its floor of the upstream's day yet.
func (w *walker) unpaced(lane int) bool {
	floor := w.grid.lanes[lane].Floor
	return floor > 0 && w.spentBy(lane, w.today.UnixMicro()-1) < floor
}

// stalest puts the runs of one moment in the order in which they go: the one whose region was served least lately first.
func (w *walker) stalest(runs []*want) {
	if len(runs) > 1 {
		slices.SortStableFunc(runs, func(a, b *want) int { return cmp.Compare(w.lanes[a.lane].served, w.lanes[b.lane].served) })
	}
}

// logs are the entries of each lane: those of its job and region, and for the first lane of a region, what a job that no longer
// fetches it has spent on it.
func logs(lanes []Lane, entries []quota.Entry) []sums {
	type key struct{ job, region string }
	exact, regions, jobs := make(map[key]int), make(map[string]int), make(map[string]bool)
	for i, l := range lanes {
		exact[key{l.Job, l.Region}], jobs[l.Job] = i, true
		if _, known := regions[l.Region]; !known {
			regions[l.Region] = i
		}
	}
	out := make([]sums, len(lanes))
	for _, e := range entries {
		job, region := e.Labels[quota.LabelJob], e.Labels[quota.LabelRegion]
		if !jobs[job] {
			continue
		}
		i, known := exact[key{job, region}]
		if !known {
			if i, known = regions[region]; !known {
				continue
			}
		}
		out[i].add(e.At.UnixMicro(), e.Units)
	}
	return out
}
