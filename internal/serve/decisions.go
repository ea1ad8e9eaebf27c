package serve

import (
	"context"
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/limit"
	"quotabudget/internal/words"
)

type decisionInput struct {
	Body struct {
		Policy string `json:"policy" maxLength:"100" doc:"one of policies: under serve:"`
		Key    string `json:"key" minLength:"1" maxLength:"256" doc:"the caller, by any name"`
		Cost   *int64 `json:"cost,omitempty" minimum:"0" default:"1" doc:"units; 0 charges nothing"`
	}
}

type decision struct {
	Policy     string     `json:"policy"`
	Allowed    bool       `json:"allowed"`
	Remaining  int64      `json:"remaining" doc:"units, after this charge if it was allowed"`
	RetryAfter *int64     `json:"retry_after_seconds" doc:"until this cost fits; null if never"`
	ResetAt    words.Time `json:"reset_at" doc:"when the whole limit is free, if nobody charges"`
}

type decisionOutput struct{ Body decision }

// decide returns a policy's decision. A denial is a normal response too: 200.
func (s *Server) decide(ctx context.Context, in *decisionInput) (*decisionOutput, error) {
	cost := int64(1)
	if in.Body.Cost != nil { // a cost of 0 differs from no cost
		cost = *in.Body.Cost
	}
	d, err := s.Guard.Decide(ctx, in.Body.Policy, in.Body.Key, cost)
	if errors.As(err, new(*limit.NoPolicyError)) {
		return nil, huma.Error404NotFound(err.Error() + ": add it to policies: under serve:")
	}
	if err != nil {
		return nil, huma.Error503ServiceUnavailable("the store of the limits cannot be reached")
	}
	out := &decisionOutput{decision{Policy: in.Body.Policy, Allowed: d.Allowed,
		Remaining: d.Remaining, ResetAt: words.Time(time.UnixMicro(d.At).Add(d.ResetAfter))}}
	if !d.Never {
		out.Body.RetryAfter = new(words.Seconds(d.RetryAfter))
	}
	return out, nil
}
