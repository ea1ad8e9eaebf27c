package quota

import "slices"

// Others is what other programs used in one window of a bucket, as the upstream reported it. It
// counts in that window alone, as an entry stamped At would, because a response reports one limit.
type Others struct {
	Window string `json:"window"` // as Window.String writes it
	At     int64  `json:"at"`     // Unix µs
	Units  int64  `json:"units"`
	// Level is the level of a restoring window at At, with these units: see Rate.
	Level int64 `json:"level,omitempty"`
}

// OthersIn returns the element for a window, or one without units.
func OthersIn(w Window, all []Others) (o Others) {
	if len(all) == 0 {
		return o
	}
	if i := slices.IndexFunc(all, func(o Others) bool { return o.Window == w.String() }); i >= 0 {
		o = all[i]
	}
	return o
}

// Replace returns all with o in the place of the element for the same window.
func (o Others) Replace(all []Others) []Others {
	all = slices.DeleteFunc(slices.Clone(all),
		func(old Others) bool { return old.Window == o.Window })
	return append(all, o)
}

// levelAt returns the level at n that follows from the report and the units charged since.
func (o Others) levelAt(r Rate, charged, n int64) int64 {
	const most = Never
	_, den := r.Terms()
	level := min(most, o.Level+den*min(charged, (most-min(most, o.Level))/den))
	return r.LevelAfter(level, n-o.At)
}
