package limit

// counter is the state of Counter and Fixed: the units of the clock's current window and of the
// previous one. Units fade by the millisecond, so that no product exceeds maxProduct.
type counter struct {
	begin    int64 // start of the current window in µs, a multiple of its length
	previous int64 // units; Fixed ignores them
	current  int64
}

// maxProduct bounds units times milliseconds to integers that Lua represents exactly.
const maxProduct = 1 << 53

// at returns the state at a moment, and the µs of its window that have passed: negative if the
// clock was set back, which frees nothing.
func (c counter) at(p *Policy, now int64) (counter, int64) {
	w := p.window()
	begin := max(now-now%w, c.begin)
	switch {
	case begin == c.begin:
	case begin == c.begin+w && p.Algorithm == Counter:
		c.previous, c.current = c.current, 0
	default:
		c.previous, c.current = 0, 0
	}
	c.begin = begin
	return c, now - begin
}

// used estimates the units in the window that ends now. The previous window's units count in
// proportion to the part of it still inside, rounded up.
func (c counter) used(w, elapsed int64) int64 {
	if c.previous == 0 {
		return c.current
	}
	return c.current + divUp(c.previous*(w/1000-max(elapsed, 0)/1000), w/1000)
}

func (stored *counter) decide(p *Policy, now, cost int64) Decision {
	w := p.window()
	c, elapsed := stored.at(p, now)
	used := c.used(w, elapsed)
	d := Decision{Allowed: cost == 0 || cost <= p.Units-used, Remaining: max(0, p.Units-used)}
	next := cost // the cost to wait for
	if d.Allowed {
		d.Remaining -= cost
		c.current += cost
		next = d.Remaining + 1
	}
	if next <= p.Units {
		d.NextAfter = micros(c.fits(p, elapsed, next))
	}
	if !d.Allowed {
		d.RetryAfter = d.NextAfter
	}
	switch {
	case c.current > 0 && p.Algorithm == Counter:
		d.ResetAfter = micros(2*w - elapsed)
	case c.current > 0 || c.previous > 0:
		d.ResetAfter = micros(w - elapsed)
	}
	return d
}

// fits returns how long until a cost fits that does not fit now.
func (c counter) fits(p *Policy, elapsed, cost int64) int64 {
	w, room := p.window(), p.Units-cost
	switch {
	case c.current <= room: // the previous window's units are in the way
		return fades(c.previous, room-c.current, w) - elapsed
	case p.Algorithm == Fixed:
		return w - elapsed
	}
	return w - elapsed + fades(c.current, room, w)
}

// fades returns how far into a window the previous window's units have faded to the given number.
func fades(units, to, w int64) int64 {
	if units <= to {
		return 0
	}
	return 1000 * divUp((units-to)*(w/1000), units)
}

func (c *counter) record(p *Policy, now, cost int64) {
	*c, _ = c.at(p, now)
	c.current = min(c.current+cost, p.maxUnits())
}

func (c *counter) idle(p *Policy, now int64) bool {
	then, _ := c.at(p, now)
	return then.previous == 0 && then.current == 0
}

// maxUnits returns the largest number of units a counter of the policy can hold. Fixed never
// multiplies its units, because they do not fade.
func (p *Policy) maxUnits() int64 {
	if p.Algorithm == Fixed {
		return maxProduct
	}
	return maxProduct / max(p.Window.Milliseconds(), 1)
}

func divUp(a, b int64) int64 { return (a + b - 1) / b }
