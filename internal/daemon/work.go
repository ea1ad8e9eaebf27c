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
// for all kinds: the ticks, which daemon runs them, their shares while units are short, and what
// happens to missed ones.
//
// Sweep (sweep.go) and Command (command.go) are the two kinds. To add one, implement this
// interface and create the type from the configuration (cmd/ingestor/run.go).
type Work interface {
	// policy returns what the lane spends from, and how its ticks are run.
	policy() Policy
	// wants sets what a run is expected to take: pages, and their price. The lane arrives with
	// the configured values.
	wants(ctx context.Context, l *share.Lane) error
	// served returns when the lane last got all it wants; zero for never or unknown.
	served(ctx context.Context, l *share.Lane) time.Time
	// known returns what is stored about the lane's ticks besides their marks in the ledger.
	known(ctx context.Context, l *lane) (known, error)
	// run runs an admitted tick, logs and counts how it ended, and returns whether it is done.
	// begun means that the tick only has to be finished.
	run(ctx context.Context, l *lane, tick schedule.Tick, begun bool) result
}

// Policy holds the settings of one kind of lane.
type Policy struct {
	Budget  *quota.Budget // what the runs spend from
	Day     quota.Window  // the upstream's
	Jitter  time.Duration
	CatchUp bool // make up at the start for ticks missed while no daemon ran, once per lane
	// SkipOverlap leaves out ticks that come during a run; otherwise they run after it.
	SkipOverlap bool
	// Queued makes runs wait for each other: at most MaxRuns at once, the lane served longest ago
	// first, and none while the upstream or the catalogue is away.
	Queued bool
}

// known is what is known of a lane's ticks.
type known struct {
	runs   map[string]bool // ticks that were begun, by ID; true if all their work is done
	newest time.Time       // when a run last got all it wants; zero for never
}
