package forecast

import "math"

// charge is units that nobody announced.
type charge struct {
	at, units int64
	drawn     bool // of a reservation: they are taken, whatever is left
}

// charges are the sizes of those in which unscheduled units are asked for, one after the other.
type charges struct {
	sizes []float64
	first int     // the place of the first one's size among them
	part  float64 // of the first one that is wanted already
}

// mostCharges is about how many charges a day is played with. Where there are more, several are
// asked for at once.
const mostCharges = 1500

// stream are the charges of a day, one after the other.
type stream struct {
	charges
	draws  []charge
	start  int64
	wants  []float64
	bin    int
	used   float64 // of the bin's units
	wanted float64 // since the charge before
	bundle float64 // charges that are asked for at once
	ahead  charge  // the next that is none of the draws
}

func (c charges) begin(o *outlook, wants []float64) *stream {
	s := &stream{charges: c, draws: o.draws, start: o.At.UnixMicro(), wants: wants, bundle: 1}
	s.ahead.at = never
	if len(c.sizes) == 0 {
		return s
	}
	sum, mean := 0.0, 0.0
	for _, w := range wants {
		sum += w
	}
	for _, u := range c.sizes {
		mean += u / float64(len(c.sizes))
	}
	s.bundle = max(1, math.Ceil(sum/mean/mostCharges))
	s.wanted = c.part * s.size()
	s.advance()
	return s
}

func (s *stream) size() float64 { return s.bundle * s.sizes[s.first%len(s.sizes)] }

// advance finds the next charge: the moment at which as much is wanted as it takes.
func (s *stream) advance() {
	s.ahead.at = never
	for ; s.bin < len(s.wants); s.bin, s.used = s.bin+1, 0 {
		need := s.size() - s.wanted
		if s.used+need > s.wants[s.bin] {
			s.wanted += s.wants[s.bin] - s.used
			continue
		}
		s.used += max(0, need)
		into := (float64(s.bin) + s.used/max(s.wants[s.bin], math.SmallestNonzeroFloat64)) * float64(bin.Microseconds())
		s.ahead = charge{s.start + int64(into), int64(s.size()), false}
		s.wanted = 0
		s.first++
		return
	}
}

// peek is the next charge; it is at never when there is none.
func (s *stream) peek() charge {
	if len(s.draws) > 0 && s.draws[0].at <= s.ahead.at {
		return s.draws[0]
	}
	return s.ahead
}

func (s *stream) pop() {
	if len(s.draws) > 0 && s.draws[0].at <= s.ahead.at {
		s.draws = s.draws[1:]
		return
	}
	s.advance()
}
