package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// CostInput is a cost: calls of a method, units of a bucket, or units by bucket.
type CostInput struct {
	Credential string `json:"credential,omitempty" maxLength:"64" doc:"needed if there are several"`

	Method string           `json:"method,omitempty" maxLength:"128" doc:"sets the costs"`
	Count  int64            `json:"count,omitempty" minimum:"1" doc:"calls; 1 if left out"`
	Bucket string           `json:"bucket,omitempty" maxLength:"128" doc:"default if left out"`
	Units  int64            `json:"units,omitempty" minimum:"1" doc:"units to take from the bucket"`
	Costs  map[string]int64 `json:"costs,omitempty" doc:"units by bucket"`

	Labels map[string]string `json:"labels,omitempty" doc:"kept with the entry in the log"`
	Manual bool              `json:"manual,omitempty" doc:"a person, who may use the headroom"`
}

// call returns the call that the input describes.
func (in CostInput) call(key string) (quota.Call, error) {
	call := quota.Call{Method: in.Method, Count: in.Count, Bucket: in.Bucket, Units: in.Units,
		Costs: costsOf(in.Costs), Manual: in.Manual, Labels: in.Labels, Key: key}
	ways := 0
	for _, given := range []bool{in.Method != "", in.Units > 0, in.Costs != nil} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1 || in.Costs != nil && len(in.Costs) == 0:
		return call, huma.Error422UnprocessableEntity("send one of method, units and costs")
	case in.Bucket != "" && in.Units == 0:
		return call, huma.Error422UnprocessableEntity("bucket needs units")
	case in.Count > 0 && in.Method == "":
		return call, huma.Error422UnprocessableEntity("count needs method")
	}
	return call, nil
}

// costsOf returns units by bucket as costs, sorted by bucket.
func costsOf(units map[string]int64) (costs []quota.Cost) {
	for _, bucket := range slices.Sorted(maps.Keys(units)) {
		costs = append(costs, quota.Cost{Bucket: bucket, Units: units[bucket]})
	}
	return costs
}

// KeyHeader is the idempotency key of a request.
type KeyHeader struct {
	Key string `header:"Idempotency-Key" maxLength:"256" doc:"once for each key"`
}

type chargeInput struct {
	KeyHeader
	Body struct {
		CostInput
		DryRun bool `json:"dry_run,omitempty" doc:"decide, but charge nothing"`
	}
}

// charged is the response to a charge. Its name keeps its schema separate from the one of POST
// /v1/decisions.
type charged struct{ report.Decision }

type chargeOutput struct{ Body charged }

func (s *Server) charge(ctx context.Context, in *chargeInput) (*chargeOutput, error) {
	b, call, err := s.budgetFor(ctx, in.Body.CostInput, in.Key)
	if err != nil {
		return nil, err
	}
	call.DryRun = in.Body.DryRun
	d, err := b.Charge(ctx, call)
	if err := denied(b, d, call, err); err != nil {
		return nil, err
	}
	return &chargeOutput{charged{report.NewDecision(d, call.DryRun)}}, nil
}

type holdInput struct {
	KeyHeader
	Body struct {
		CostInput
		TTL   string `json:"ttl" example:"10m" doc:"how long the hold lasts: 90s, 10m, 2d"`
		Lapse string `json:"lapse,omitempty" enum:"charge,release" doc:"if never settled; release if left out"`
		Note  string `json:"note,omitempty" maxLength:"256"`
	}
}

type holdOutput struct {
	Location string `header:"Location"`
	Body     struct {
		Hold      string           `json:"hold"`
		ExpiresAt words.Time       `json:"expires_at"`
		Units     map[string]int64 `json:"units"`
		Remaining map[string]int64 `json:"remaining"`
	}
}

func (s *Server) hold(ctx context.Context, in *holdInput) (*holdOutput, error) {
	ttl, err := parseTTL(in.Body.TTL)
	if err != nil {
		return nil, err
	}
	b, call, err := s.budgetFor(ctx, in.Body.CostInput, in.Key)
	if err != nil {
		return nil, err
	}
	d, err := b.Reserve(ctx, quota.ReserveRequest{Call: call, TTL: ttl,
		Lapse: quota.Lapse(in.Body.Lapse), Note: in.Body.Note})
	if err := denied(b, d, call, err); err != nil {
		return nil, err
	}
	out := &holdOutput{Location: "/v1/holds/" + // only slashes, which separate parts, need escaping
		strings.ReplaceAll(d.Reservation, "/", "%2F")}
	out.Body.Hold, out.Body.ExpiresAt = d.Reservation, words.Time(d.ExpiresAt)
	out.Body.Units, out.Body.Remaining = d.Units, report.NewDecision(d, false).Remaining
	return out, nil
}

// HoldPath is the hold in a path. Slashes of its buckets are escaped there.
type HoldPath struct {
	Hold string `path:"hold" maxLength:"1200"`
}

type extendInput struct {
	HoldPath
	Body struct {
		TTL string `json:"ttl" example:"10m" doc:"how long the hold lasts from now"`
	}
}

type extendOutput struct {
	Body struct {
		Hold      string     `json:"hold"`
		ExpiresAt words.Time `json:"expires_at"`
	}
}

func (s *Server) extend(ctx context.Context, in *extendInput) (*extendOutput, error) {
	ttl, err := parseTTL(in.Body.TTL)
	if err != nil {
		return nil, err
	}
	out := &extendOutput{}
	out.Body.Hold = in.Hold
	return out, s.withHold(ctx, in.Hold, func(b *quota.Budget) error {
		until, err := b.Extend(ctx, in.Hold, ttl)
		out.Body.ExpiresAt = words.Time(until)
		return err
	})
}

type settleInput struct {
	HoldPath
	Body struct {
		Costs  map[string]int64  `json:"costs" doc:"units used by bucket; of others, what was held"`
		Labels map[string]string `json:"labels,omitempty" doc:"kept with the entries in the log"`

		ChargeLost bool `json:"charge_lost,omitempty" doc:"charge the costs if a failover lost the hold"`
	}
}

type settleOutput struct {
	Body struct {
		Units     map[string]int64 `json:"units" doc:"booked, by bucket"`
		Remaining map[string]int64 `json:"remaining"`
		Late      bool             `json:"late" doc:"the hold had become a charge"`
	}
}

func (s *Server) settle(ctx context.Context, in *settleInput) (*settleOutput, error) {
	call := quota.Call{Costs: costsOf(in.Body.Costs), Labels: labelled(ctx, in.Body.Labels)}
	for _, c := range call.Costs {
		if c.Units < 0 {
			return nil, huma.Error422UnprocessableEntity(fmt.Sprintf(
				"costs: %s: must be 0 or more units", c.Bucket))
		}
	}
	var d quota.Decision
	lost := false
	err := s.withHold(ctx, in.Hold, func(b *quota.Budget) (err error) {
		d, err = b.Settle(ctx, in.Hold, call)
		lost = errors.Is(err, quota.ErrNoReservation)
		return err
	})
	if b := s.onlyBudgetOf(in.Hold); lost && in.Body.ChargeLost && len(call.Costs) > 0 && b != nil {
		d, err = b.SettleLost(ctx, in.Hold, call)
	}
	out := &settleOutput{}
	out.Body.Units, out.Body.Late = d.Units, d.Late
	out.Body.Remaining = report.NewDecision(d, false).Remaining
	return out, err
}

type releaseOutput struct {
	Body struct {
		Released map[string]int64 `json:"released" doc:"units by bucket"`
	}
}

func (s *Server) release(ctx context.Context, in *HoldPath) (*releaseOutput, error) {
	out := &releaseOutput{}
	return out, s.withHold(ctx, in.Hold, func(b *quota.Budget) (err error) {
		out.Body.Released, err = b.Release(ctx, in.Hold)
		return err
	})
}
