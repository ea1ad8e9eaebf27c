// Command quotactl shows a quota budget and spends from it.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // zones for systems without any

	"quotabudget/internal/cli"
)

func main() {
	log.SetOutput(io.Discard) // net/http logs unsolicited data of an upstream there
	// an ignored signal must stay ignored: exec would end its command otherwise
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(os.Interrupt) {
		signals = append(signals, os.Interrupt)
	}
	// The first signal ends the program in an orderly way; the second ends it at once, as usual.
	ctx, restore := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, restore)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer,
	getenv func(string) string) int {
	a := &app{cli.Common{Stdout: stdout, Stderr: stderr, Getenv: getenv}}
	return a.Execute(ctx, a.root(args), args)
}
