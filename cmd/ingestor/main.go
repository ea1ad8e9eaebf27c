// Command ingestor fetches YouTube's regional charts within a budget: once for cron, or as a
// daemon.
package main

import (
	"context"
	_ "embed"
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

// manual is the help of the commands.
//
//go:embed manual.yaml
var manual []byte

type app struct{ cli.Common }

func run(ctx context.Context, args []string, stdout, stderr io.Writer,
	getenv func(string) string) int {
	a := &app{cli.Common{Stdout: stdout, Stderr: stderr, Getenv: getenv,
		Manual: cli.ReadManual(manual)}}
	return a.Execute(ctx, a.root(), args)
}

func (a *app) root() *cobra.Command {
	root := a.Command("ingestor", nil)
	a.Bind(root)
	cli.Elsewhere(root, "quotactl", "status", "top", "forecast", "log", "explain", "reservations",
		"costs", "prove", "spend", "exec", "reserve", "draw", "commit", "settle", "release", "adjust",
		"reconcile", "suspend", "resume", "proxy", "mcp", "config", "import", "limits", "ledger",
		"doctor", "notify")
	root.AddCommand(onceCommand(a), a.Command("run", a.daemon), planCommand(a),
		a.Command("report", nil, freshnessCommand(a)), requestCommand(a), a.Command("jobs", a.jobs),
		standinCommand(a), serveCommand(a), chartCommand(a), searchCommand(a), videoCommand(a),
		purgeCommand(a))
	return root
}
