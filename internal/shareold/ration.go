package share

// Rations are the shares of a Day for some time after they were dealt: what is spent without a schedule meanwhile does not change
// them, and they cost less to ask than Day.Admit. Asked before anything has happened since, they answer as Day.Admit does.
type Rations struct {
	shares []Share
	slides bool
}

// Ration deals the shares; nil when the day is not short, and everybody may run.
func (d Day) Ration() *Rations {
	if !d.Short() {
		return nil
	}
	shares, _ := d.entitle()
	return &Rations{shares, d.Slides}
}

// Admit decides, as Day.Admit does, whether a lane runs now. left is the units that are free for it.
func (r *Rations) Admit(lane int, left int64) bool {
	s := &r.shares[lane]
	if s.Cost <= 0 {
		return true
	}
	ticks := max(s.Ticks, s.Remaining, 1)
	return s.Cost <= left && s.runs(Decision{Slides: r.slides, Ticks: ticks, Tick: min(ticks-s.Remaining+1, ticks)})
}

// Done takes a tick off those of a lane to come, and what it has spent off its share.
func (r *Rations) Done(lane int, units int64) {
	s := &r.shares[lane]
	s.Remaining--
	s.Number++
	s.Spent += units
	if s.Cost > 0 && units > 0 {
		s.Runs = max(0, s.Runs-(units+s.Cost-1)/s.Cost)
	}
}
