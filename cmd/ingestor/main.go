// Command ingestor fetches YouTube's regional charts within a budget: once for cron, or as a
// daemon.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the upstream's day needs a time zone even where none is installed

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
)

func main() {
	log.SetOutput(io.Discard) // net/http logs unsolicited data of an upstream there
	// The first signal ends the program after the current page; the second ends it at once, as
	// usual.
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv))
}

type app struct{ cli.Common }

func run(ctx context.Context, args []string, stdout, stderr io.Writer,
	getenv func(string) string) int {
	a := &app{cli.Common{Stdout: stdout, Stderr: stderr, Getenv: getenv}}
	root := &cobra.Command{
		Use:   "ingestor",
		Short: "Fetch YouTube's charts under a budget",
		Long: `ingestor reads the chart of the most popular videos of each region into a catalogue.
Every request is charged to a ledger before it is sent, so that the day's quota is never exceeded.
When it is used up, a sweep ends cleanly and keeps what it has; the next one begins with the regions
that were left out.

Configuration: quota.yaml (see --config), then the environment: QUOTA_LEDGER, QUOTA_CATALOG,
YOUTUBE_API_KEY, YOUTUBE_ENDPOINT. Exit codes: 0 done, 1 failed, 64 usage, 69 ledger or upstream
unavailable, 75 exhausted: try again later, 77 credential refused by the upstream, 78
configuration.`,
		Example: `  ingestor once --demo                     see it work, without a key
  YOUTUBE_API_KEY=… ingestor once          one sweep of the configured regions
  ingestor run                             the daemon: regions by their schedule
  ingestor plan                            what the schedule will spend
  ingestor once --region US,GB --pages 1   the first 50 places of two charts
  ingestor chart US                        read what was fetched
  ingestor search "lofi"                   find videos`,
	}
	a.Bind(root)
	cli.Elsewhere(root, "quotactl", "status", "top", "forecast", "log", "explain", "reservations",
		"costs", "prove", "spend", "exec", "reserve", "draw", "commit", "settle", "release", "adjust",
		"reconcile", "suspend", "resume", "proxy", "mcp", "config", "import", "limits", "ledger",
		"doctor", "notify")
	root.AddCommand(onceCommand(a), runCommand(a), planCommand(a), reportCommand(a),
		requestCommand(a), jobsCommand(a), standinCommand(a), serveCommand(a), chartCommand(a),
		searchCommand(a), videoCommand(a), purgeCommand(a))
	return a.Execute(ctx, root, args)
}
