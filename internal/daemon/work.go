package daemon

import (
	"context"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Lane is a lane of the schedule, and what its ticks do.
type Lane struct {
	share.Lane
	Work Work
}

// Work is what the ticks of a lane do: one kind of job is one type. Everything else is the same for
// all kinds, and knows none of them: the ticks, who runs them, what each may take while units are
// short, what happens to those that were missed.
//
// There is one for sweeps (sweep.go), and one for commands (command.go). A third kind is another
// type with these methods, and a place where it is made of the configuration (cmd/ingestor/run.go).
type Work interface {
	// policy is what the lane spends from, and how its ticks are run.
	policy() Policy
	// wants sets what a run takes, as far as that is known before it: pages, and their price. The
	// lane comes with what is configured.
	wants(ctx context.Context, l *share.Lane) error
	// served is when the lane last got all that it wants; zero for never, or when that is not
	// known.
	served(ctx context.Context, l *share.Lane) time.Time
	// known is what is kept of the lane's ticks besides their marks in the ledger.
	known(ctx context.Context, l *lane) (known, error)
	// run runs a tick that was decided on, logs and counts how it ended, and says whether it is
	// done. One that was begun before is only finished.
	run(ctx context.Context, l *lane, tick schedule.Tick, begun bool) result
}

// Policy is what lanes of one kind have in common with others.
type Policy struct {
	Budget  *quota.Budget // that the runs spend from
	Day     quota.Window  // the upstream's
	Jitter  time.Duration
	CatchUp bool // run at the start what was missed while no daemon ran, once for each lane
	// SkipOverlap is whether ticks that come while a run lasts are left out; else they run after
	// it.
	SkipOverlap bool
	// Queued is whether runs wait for each other: there are at most MaxRuns at once, the lane that
	// was served longest ago goes first, and none while the upstream or the catalogue is away.
	Queued bool
}

// known is what is known of a lane's ticks.
type known struct {
	runs   map[string]bool // ticks that were begun, by ID, and whether all of their work is done
	newest time.Time       // when a run last got all that it wants; zero for never
}
