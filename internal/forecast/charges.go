package forecast

// charges are those in which unscheduled units are asked for, one after the other.
type charges struct {
	sizes  []float64
	place  int     // of the next one's size among them
	size   float64 // of the next one
	wanted float64 // since the one before
}

// begin are the charges of one of the days, with a part of the first one wanted already.
func (h *habit) begin(day int, part float64) charges {
	c := charges{sizes: h.sizes, place: day % len(h.sizes)}
	c.size = c.sizes[c.place]
	c.wanted = part * c.size
	return c
}

// next goes on to the next charge.
func (c *charges) next() {
	c.wanted -= c.size
	if c.place++; c.place == len(c.sizes) {
		c.place = 0
	}
	c.size = c.sizes[c.place]
}
