// Runs the Go client of the ledger over HTTP: URL JOURNAL STEP... It prints a word for each step.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"quotabudget/client"
)

func main() {
	ctx := context.Background()
	l := &client.Client{URL: os.Args[1], Token: os.Getenv("TOKEN"),
		Journal: &client.Journal{Path: os.Args[2]}}
	var held client.Held
	for _, step := range os.Args[3:] {
		verb, number, _ := strings.Cut(step, "=")
		n, _ := strconv.ParseInt(number, 10, 64)
		var err error
		if verb == "settle" && held.ID == "" {
			fmt.Println("none")
			continue
		}
		switch verb {
		case "charge":
			_, err = l.Charge(ctx, client.Cost{Units: n}, "")
		case "hold":
			held, err = l.Hold(ctx, client.Cost{Units: n}, time.Hour, "")
		case "settle":
			_, err = l.Settle(ctx, held.ID, map[string]int64{"default": n})
		case "release":
			_, err = l.Release(ctx, held.ID)
		case "extend":
			_, err = l.Extend(ctx, held.ID, 2*time.Hour)
		case "replay":
			err = l.Replay(ctx)
		}
		fmt.Println(outcome(err))
	}
}

func outcome(err error) string {
	var denied *client.DeniedError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &denied) && denied.Never:
		return "never"
	case errors.As(err, &denied) && denied.RetryAt.After(time.Now()):
		return "denied"
	}
	return "failed"
}
