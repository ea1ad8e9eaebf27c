package notify

import (
	"context"
	"time"

	"quotabudget/internal/config"
)

// Result is the result of a test notification.
type Result struct {
	Target string  `json:"target"` // url, mail or command
	To     string  `json:"to"`     // without secrets
	ID     string  `json:"id"`
	Sent   bool    `json:"sent"`
	Answer string  `json:"answer"` // response of the receiver, or output of the program
	Error  *string `json:"error"`  // nil if it was sent
	Do     string  `json:"-"`      // what to do about the error
}

// Test sends one notification to each target.
func Test(ctx context.Context, cfg *config.Config, environ []string) (all []Result) {
	now := time.Now()
	e := Event{Name: "test", Text: "this is a test: quotactl notify test has sent it", at: now,
		ends: now}
	for _, t := range targets(cfg, environ) {
		r := Result{Target: t.name(), To: t.to(), ID: e.id()}
		answer, err := t.deliver(ctx, e)
		r.Answer, r.Sent = answer, err == nil
		if err != nil {
			r.Error, r.Do = new(err.Error()), remedy(t)
		}
		all = append(all, r)
	}
	return all
}

// remedy returns what to do about a target that failed.
func remedy(t target) string {
	w, ok := t.(webhook)
	if !ok || !w.Secret.Placed() {
		return "correct " + t.name() + " under notify:"
	}
	if _, err := w.Secret.Key(); err != nil {
		return w.Secret.Advice()
	}
	if _, err := w.key(); err != nil {
		return "correct the secret: " + w.Secret.String()
	}
	return "correct url or secret under notify:"
}
