package slice

import "time"

// moment is a time by two clocks of this host: the one that people and NTP set, and the one that
// counts since the host was started.
type moment struct {
	wall time.Time
	boot string        // "" where there is no such clock
	up   time.Duration // since that boot, standby included
}

// since is how long ago an earlier moment was, by the clock that says it was longer. It is false
// where the host was started anew since and its clock is behind.
func (m moment) since(earlier moment) (time.Duration, bool) {
	byWall := m.wall.Sub(earlier.wall)
	if m.boot != "" && m.boot == earlier.boot {
		return max(byWall, m.up-earlier.up), true
	}
	return byWall, byWall >= 0
}

// ago is how long ago an earlier moment really was, as far as is known: whoever sets the clock
// changes nothing. Where nobody can know it is 0.
func (m moment) ago(earlier moment) time.Duration {
	if m.boot != "" && m.boot == earlier.boot {
		return max(0, m.up-earlier.up)
	}
	return max(0, m.wall.Sub(earlier.wall))
}
