package serve

import (
	"fmt"
	"strconv"
	"strings"
)

// spark is the way of a video through the last charts, as a line without axes: the oldest chart is
// at the left, the best place at the top.
type spark struct {
	Text  string   // for those who do not see it
	Lines []string // points of polylines: where the video was in no chart, the line is broken
	X, Y  string   // of the last point
}

const (
	sparkStep   = 8
	sparkHeight = 22
	sparkMargin = 3
)

// leastSpan is how many places a line spans at least, so that small steps look small.
const leastSpan = 12

// newSpark draws ranks, of which 0 means that the video was in no chart.
func newSpark(ranks []int) *spark {
	if len(ranks) < 3 { // the movement says as much
		return nil
	}
	best, worst := ranks[len(ranks)-1], ranks[len(ranks)-1]
	for _, rank := range ranks {
		if rank > 0 {
			best, worst = min(best, rank), max(worst, rank)
		}
	}
	span := float64(max(worst-best, leastSpan))
	above := (span - float64(worst-best)) / 2 // of the best place
	s := &spark{}
	var line, told []string
	flush := func() {
		if len(line) > 1 {
			s.Lines = append(s.Lines, strings.Join(line, " "))
		}
		line = nil
	}
	for i, rank := range ranks {
		if rank == 0 {
			flush()
			told = append(told, "–")
			continue
		}
		told = append(told, strconv.Itoa(rank))
		down := (above + float64(rank-best)) / span
		s.X = strconv.Itoa(sparkMargin + i*sparkStep)
		s.Y = fmt.Sprintf("%.1f", sparkMargin+down*(sparkHeight-2*sparkMargin))
		line = append(line, s.X+","+s.Y)
	}
	flush()
	s.Text = "places in the last charts: " + strings.Join(told, ", ")
	return s
}
