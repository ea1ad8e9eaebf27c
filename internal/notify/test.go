package notify

import (
	"context"
	"time"

	"quotabudget/internal/config"
)

// Result is what came of a notification that was sent to try a target.
type Result struct {
	Target string  `json:"target"` // url, mail or command
	To     string  `json:"to"`     // without what may be secret
	ID     string  `json:"id"`
	Sent   bool    `json:"sent"`
	Answer string  `json:"answer"` // of the receiver, or the output of the program
	Error  *string `json:"error"`  // why it was not sent
}

// Test sends a notification to each target, once.
func Test(ctx context.Context, cfg *config.Config, environ []string) (all []Result) {
	now := time.Now()
	e := Event{Name: "test", Text: "this is a test: quotactl notify test has sent it", at: now,
		ends: now}
	for _, t := range targets(cfg, environ) {
		r := Result{Target: t.name(), To: t.to(), ID: e.id()}
		answer, err := t.deliver(ctx, e)
		r.Answer, r.Sent = answer, err == nil
		if err != nil {
			r.Error = new(err.Error())
		}
		all = append(all, r)
	}
	return all
}
