package daemon

import (
	"context"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Lane is a lane of the schedule with its work.
type Lane struct {
	share.Lane
	Work Work
}

// Work is what the ticks of a lane do: one type for each kind of job. Everything else is the same
// for all kinds: the ticks, the choice of the daemon, the shares while units are short, and the
// handling of missed ticks.
//
// Sweep (sweep.go) and Command (command.go) are the two kinds. To add one, implement this
// interface and create the type from the configuration (cmd/ingestor/run.go).
type Work interface {
	// policy returns the lane's budget, and how its ticks run.
	policy() Policy
	// wants replaces the lane's configured pages and price by those that a run is expected to take.
	wants(ctx context.Context, l *share.Lane) error
	// served returns when a run of the lane last got all it wanted; zero for never or unknown.
	served(ctx context.Context, l *share.Lane) time.Time
	// earlier returns what is stored about the lane's ticks besides their marks in the ledger.
	earlier(ctx context.Context, l *lane) (earlierTicks, error)
	// run runs an admitted tick, logs and counts how it ended, and returns whether it is done.
	// begun means that an earlier run was admitted, so that this one only finishes the tick.
	run(ctx context.Context, l *lane, tick schedule.Tick, begun bool) result
}

// Policy holds the settings of one kind of lane.
type Policy struct {
	Budget  *quota.Budget // the runs spend from it
	Day     quota.Window  // the upstream's day
	Jitter  time.Duration
	CatchUp bool // at the start, run one tick in place of those missed while no daemon ran
	// SkipOverlap leaves out ticks that come during a run; otherwise they run after it.
	SkipOverlap bool
	// Queued runs take turns: at most MaxRuns at once, the lane served longest ago first, and none
	// while the upstream or the catalogue is away.
	Queued bool
}

// earlierTicks describes the ticks of a lane that came before.
type earlierTicks struct {
	runs   map[string]bool // begun ticks by ID; true if all the work is done
	newest time.Time       // when a run last got all it wanted; zero for never
}
