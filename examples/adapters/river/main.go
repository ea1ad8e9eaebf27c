// Command river makes River process one job whose call is charged to a quota ledger: URL DATABASE.
// It prints when a denied job will run again, and a line once it has run.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	_ "modernc.org/sqlite"

	"quotabudget/client"
)

// fetch is the job.
type fetch struct{}

func (fetch) Kind() string { return "fetch" }

type fetcher struct{ river.WorkerDefaults[fetch] }

func (fetcher) Work(context.Context, *river.Job[fetch]) error { return nil } // the call goes here

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url, database string) error {
	db, err := sql.Open("sqlite", database)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	driver := riversqlite.New(db)
	tables, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := tables.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, fetcher{})
	queue, err := river.NewClient(driver, &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}},
		Middleware: []rivertype.Middleware{&quota{ledger: &client.Client{URL: url},
			cost: func(*rivertype.JobRow) client.Cost { return client.Cost{Units: 1} }}},
	})
	if err != nil {
		return err
	}
	events, cancel := queue.Subscribe(river.EventKindJobSnoozed, river.EventKindJobCompleted)
	defer cancel()
	if err := queue.Start(ctx); err != nil {
		return err
	}
	if _, err := queue.Insert(ctx, fetch{}, nil); err != nil {
		return err
	}
	for event := range events {
		if event.Kind == river.EventKindJobCompleted {
			fmt.Println("done at attempt", event.Job.Attempt)
			return queue.Stop(ctx)
		}
		fmt.Println("denied until", event.Job.ScheduledAt.UTC().Format(time.RFC3339Nano))
	}
	return nil
}
