package forecast

import "time"

// Watch notices when the verdict on a bucket changes, so that it is reported once, and once a day
// that runs are lost although the bucket lasts. The zero Watch has seen nothing yet. It is for one
// credential and one goroutine.
type Watch struct {
	said map[string]Verdict
	lost map[string]time.Time // until when lost runs have been reported
}

// Between these chances of running dry a verdict is kept: it would change to and fro otherwise.
const (
	surelyLasts = 0.35
	surelyDry   = 0.65
)

// Changed reports whether the verdict on the bucket is not what it was, or runs are lost that have
// not been reported until the reset. The first verdict is a change only when it is Short.
func (w *Watch) Changed(f Forecast) (was Verdict, changed bool) {
	was, heard := w.said[f.Bucket]
	now := f.Verdict
	lost := f.Lost.Runs > 0
	news := lost && !f.At.Before(w.lost[f.Bucket])
	switch {
	case was == Lasts && now == RunsDry && f.Chance < surelyDry,
		was == RunsDry && now == Lasts && f.Chance > surelyLasts,
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
