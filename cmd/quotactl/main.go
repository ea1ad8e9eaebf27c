// Command quotactl looks at a quota budget and spends from it.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // zones are needed where the system has none

	"quotabudget/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer,
	getenv func(string) string) int {
	a := &app{cli.Common{Stdout: stdout, Stderr: stderr, Getenv: getenv}}
	return a.Execute(ctx, a.root(), args)
}
