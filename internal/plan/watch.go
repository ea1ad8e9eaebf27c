package plan

import "time"

// VerdictWatch detects changes of a bucket's verdict, so that each is reported once, and lost runs
// of a bucket that lasts once a day. A VerdictWatch is for one credential, and for one goroutine at
// a time.
type VerdictWatch struct {
	said map[string]Verdict
	lost map[string]time.Time // time up to which lost runs have been reported
}

// Changed reports whether the verdict on the bucket has changed, or runs are lost that were not
// reported for this reset. A first verdict counts as a change only if it is Short.
func (w *VerdictWatch) Changed(f Forecast) (was Verdict, changed bool) {
	was, heard := w.said[f.Bucket]
	now := f.Verdict
	if now == Unused { // no news
		now = Lasts
	}
	lost := f.Lost.Runs > 0
	news := lost && !f.At.Before(w.lost[f.Bucket])
	switch {
	case was == RunsDry && now == Lasts && !f.Earliest.IsZero(), // so that the verdict does not flip
		was == Exhausted && now == Lasts && lost && !news: // units come free one by one
		now = was
	}
	changed = now != was || news
	if !heard {
		was, changed = "", f.Short()
	}
	if w.said == nil {
		w.said, w.lost = make(map[string]Verdict), make(map[string]time.Time)
	}
	w.said[f.Bucket] = now
	if changed && lost {
		w.lost[f.Bucket] = f.ResetAt
	}
	return was, changed
}
