// Command asynq makes asynq process one task whose call is charged to a quota ledger: URL REDIS. It
// prints when a denied task will run again, and a line once it has run.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/hibiken/asynq"

	"quotabudget/client"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(url, redis string) error {
	to, err := asynq.ParseRedisURI(redis)
	if err != nil {
		return err
	}
	queue := asynq.NewClient(to)
	defer queue.Close()
	server := asynq.NewServer(to, asynq.Config{Concurrency: 1, IsFailure: isFailure,
		DelayedTaskCheckInterval: time.Second,
		RetryDelayFunc: func(retried int, err error, task *asynq.Task) time.Duration {
			delay := retryDelay(retried, err, task)
			fmt.Println("denied until", time.Now().Add(delay).UTC().Format(time.RFC3339))
			return delay
		}})
	done := make(chan int)
	tasks := asynq.NewServeMux()
	tasks.Use(charged(&client.Client{URL: url}, func(*asynq.Task) client.Cost {
		return client.Cost{Units: 1}
	}))
	tasks.HandleFunc("fetch", func(ctx context.Context, _ *asynq.Task) error {
		retried, _ := asynq.GetRetryCount(ctx) // the call goes here
		done <- retried + 1
		return nil
	})
	if err := server.Start(tasks); err != nil {
		return err
	}
	if _, err := queue.Enqueue(asynq.NewTask("fetch", nil)); err != nil {
		return err
	}
	fmt.Println("done at attempt", <-done)
	server.Shutdown()
	return nil
}
