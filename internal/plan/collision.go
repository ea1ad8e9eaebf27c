package plan

import (
	"encoding/binary"
	"slices"
	"time"
)

// mostCollisions is how many different sets of lanes are told apart.
const mostCollisions = 1000

// crowd notes the ticks of one minute.
func (s *player) crowd(events []event, day int) {
	at := moment(events[0].at).Truncate(time.Minute)
	for i := range s.report.Days[day:] {
		d := &s.report.Days[day+i]
		d.Crowded++
		if len(events) > d.Ticks {
			d.Busiest, d.Ticks = at, len(events)
		}
	}
	who := make([]int32, len(events))
	for i, e := range events {
		who[i] = e.lane
	}
	slices.Sort(who)
	key := make([]byte, 0, 4*len(who))
	for _, lane := range who {
		key = binary.LittleEndian.AppendUint32(key, uint32(lane))
	}
	if i, known := s.crowds[string(key)]; known {
		s.report.Collisions[i].Times++
		return
	}
	if len(s.crowds) == mostCollisions {
		return
	}
	c := Collision{Ticks: len(who), First: at, Times: 1}
	for _, lane := range slices.Compact(who) {
		c.Lanes = append(c.Lanes, s.Lanes[lane].Job+"/"+s.Lanes[lane].Region)
	}
	s.crowds[string(key)] = len(s.report.Collisions)
	s.report.Collisions = append(s.report.Collisions, c)
}
