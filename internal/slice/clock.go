package slice

import "time"

// moment is a time by two clocks of this host: the one that people and NTP set, and the one that
// counts since the host was started.
type moment struct {
	wall time.Time
	boot string        // "" where there is no such clock
	up   time.Duration // since that boot, standby included
}

// since returns the time since an earlier moment, by the clock that shows more. It returns false if
// the host was restarted with a clock that is behind.
func (m moment) since(earlier moment) (time.Duration, bool) {
	byWall := m.wall.Sub(earlier.wall)
	if m.boot != "" && m.boot == earlier.boot {
		return max(byWall, m.up-earlier.up), true
	}
	return byWall, byWall >= 0
}

// ago returns the time since an earlier moment, even if the clock was set meanwhile. It is 0 if
// that cannot be known.
func (m moment) ago(earlier moment) time.Duration {
	if m.boot != "" && m.boot == earlier.boot {
		return max(0, m.up-earlier.up)
	}
	return max(0, m.wall.Sub(earlier.wall))
}
