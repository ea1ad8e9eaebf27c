// Command quotactl looks at a quota budget and spends from it.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // zones are needed where the system has none

	"quotabudget/internal/cli"
)

func main() {
	log.SetOutput(io.Discard) // where net/http repeats what an upstream sent unasked
	// exec must not turn a signal that is ignored into one that ends its command
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(os.Interrupt) {
		signals = append(signals, os.Interrupt)
	}
	// The first signal asks to end; the second ends at once, as signals do.
	ctx, restore := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, restore)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer,
	getenv func(string) string) int {
	a := &app{cli.Common{Stdout: stdout, Stderr: stderr, Getenv: getenv}}
	return a.Execute(ctx, a.root(args), args)
}
