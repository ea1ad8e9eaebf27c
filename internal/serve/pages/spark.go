package pages

import (
	"fmt"
	"strconv"
	"strings"
)

// spark is the way of a video through the last charts, as a line without axes: the oldest chart is
// at the left, the first place at the top.
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

// newSpark draws ranks, of which 0 means that the video was in no chart; most is the lowest place.
func newSpark(ranks []int, most int) *spark {
	if len(ranks) < 3 { // the movement says as much
		return nil
	}
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
		s.X = strconv.Itoa(sparkMargin + i*sparkStep)
		s.Y = fmt.Sprintf("%.1f", sparkMargin+float64(rank-1)/float64(max(most-1, 1))*
			(sparkHeight-2*sparkMargin))
		line = append(line, s.X+","+s.Y)
	}
	flush()
	s.Text = "places in the last charts: " + strings.Join(told, ", ")
	return s
}
