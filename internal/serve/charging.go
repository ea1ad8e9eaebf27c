package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/config"
	"quotabudget/internal/limit"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// charging makes an operation require the scope charge, and documents its refusals.
func (s *Server) charging(api huma.API) func(*huma.Operation) {
	tooMuch := problems(api, "a limit denies the charge or the request; Retry-After is when it fits",
		reflect.TypeFor[denial](), reflect.TypeFor[limit.Problem]())
	return func(o *huma.Operation) {
		o.MaxBodyBytes = 64 << 10
		o.Errors = append(o.Errors, 400, 401, 403, 404, 409, 500)
		o.Responses = map[string]*huma.Response{"429": tooMuch}
		o.Middlewares = append(o.Middlewares, func(ctx huma.Context, next func(huma.Context)) {
			ctx.SetHeader("Cache-Control", "no-store")
			caller, status, text := s.charger(ctx)
			if status == 0 {
				ctx = huma.WithValue(ctx, traceKey{}, ctx.Header("Traceparent"))
				next(huma.WithValue(ctx, holderKey{}, caller))
				return
			}
			if status == http.StatusUnauthorized {
				ctx.SetHeader("WWW-Authenticate", "Bearer")
			}
			huma.WriteErr(api, ctx, status, text)
		})
	}
}

const problemJSON = "application/problem+json"

// charger returns the caller if it may charge, or the error that refuses it.
func (s *Server) charger(ctx huma.Context) (caller limit.TokenHolder, status int, text string) {
	var keys []string
	ctx.EachHeader(func(name, value string) {
		if strings.EqualFold(name, "Idempotency-Key") {
			keys = append(keys, value)
		}
	})
	switch {
	case len(keys) > 1: // repeated with the keys swapped, the request would charge twice
		return caller, http.StatusBadRequest, "send one Idempotency-Key"
	case len(keys) == 1 && keys[0] == "": // sent again, the request would charge again
		return caller, http.StatusBadRequest,
			"the Idempotency-Key is empty: leave it out, or send a key"
	}
	if s.Tokens == nil {
		local, _ := ctx.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if s.Public || local == nil || !local.IP.IsLoopback() {
			return caller, http.StatusForbidden,
				"only a caller with a token may charge here: set token_file: under serve:"
		}
		return limit.TokenHolder{Manual: true}, 0, ""
	}
	caller, known := s.Tokens.Of(limit.SentTokens(ctx.Header("Authorization"))...)
	switch {
	case !known:
		return caller, http.StatusUnauthorized,
			s.tokenRefusal(ctx.Header("Authorization"))
	case !caller.May(limit.ScopeCharge, limit.ScopeRead):
		return caller, http.StatusForbidden,
			"this token may not charge: its line in the token file lacks the scope charge"
	}
	return caller, 0, ""
}

// holderKey is the key of the caller in the context of a request.
type holderKey struct{}

func holder(ctx context.Context) limit.TokenHolder {
	caller, _ := ctx.Value(holderKey{}).(limit.TokenHolder)
	return caller
}

// traceKey is the key of a request's traceparent in its context.
type traceKey struct{}

// labelled returns the labels of a request, of its caller and of its trace.
func labelled(ctx context.Context, labels quota.Labels) quota.Labels {
	trace, _ := ctx.Value(traceKey{}).(string)
	return labels.With(holder(ctx).LabelsOf()).WithTrace(trace)
}

// accounts holds the budgets of the current configuration.
type accounts struct {
	mu      sync.Mutex
	cfg     *config.Config
	budgets map[string]*quota.Budget // by credential
}

func (s *Server) budgetOf(cred config.Credential) *quota.Budget {
	src, a := s.Source(), &s.accounts
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cfg != src.Config { // first request, or a reload
		a.cfg, a.budgets = src.Config, make(map[string]*quota.Budget)
	}
	if a.budgets[cred.Name] == nil {
		a.budgets[cred.Name] = report.Journaled(cred.Budget(src.Ledger, src.Config.Table(cred), s.Log),
			src.Config, cred)
	}
	return a.budgets[cred.Name]
}

// budgetFor returns the budget of a cost, and the call with the caller's labels.
func (s *Server) budgetFor(ctx context.Context, in CostInput, key string) (
	*quota.Budget, quota.Call, error) {
	call, err := in.call(key)
	if err != nil {
		return nil, call, err
	}
	cfg := s.Source().Config
	cred, err := cfg.Credential(in.Credential)
	switch {
	case err != nil && in.Credential == "":
		return nil, call, huma.Error422UnprocessableEntity("credential is missing: " + err.Error())
	case err != nil:
		return nil, call, huma.Error404NotFound(err.Error())
	}
	b, caller := s.budgetOf(cred), holder(ctx)
	if call.Manual && !caller.Manual {
		return nil, call, huma.Error403Forbidden(
			"this token may not charge manually: its line in the token file lacks the word manual")
	}
	if call.Method != "" {
		if m, err := cfg.Table(cred).Lookup(call.Method); err != nil {
			return nil, call, err
		} else if !m.Known() {
			return nil, call, huma.Error422UnprocessableEntity(fmt.Sprintf(
				"the cost of %s depends on the call: send costs", call.Method))
		}
	}
	costs, err := b.Costs(call)
	if err != nil {
		return nil, call, err
	}
	for _, c := range costs {
		if !caller.MayCharge(c.Bucket) {
			return nil, call, huma.Error403Forbidden("this token may not charge " + c.Bucket +
				": its line in the token file does not name that bucket")
		}
		if call.Method == "" && !b.Limited(c.Bucket) {
			return nil, call, huma.Error404NotFound(fmt.Sprintf(
				"no limit of %s is on bucket %q: it has limits on %s", cred.Name, c.Bucket,
				strings.Join(b.Buckets(), ", ")))
		}
	}
	call.Labels, call.Allow = labelled(ctx, call.Labels), caller.Allow
	return b, call, nil
}

// withHold runs work on the budget whose ledger contains the hold. It refuses a hold of a bucket or
// a label value that the caller's token may not charge.
func (s *Server) withHold(ctx context.Context, hold string, work func(*quota.Budget) error) error {
	buckets, err := quota.HeldBuckets(hold)
	if err != nil {
		return huma.Error404NotFound(err.Error())
	}
	for _, bucket := range buckets {
		if !holder(ctx).MayCharge(bucket) {
			return huma.Error403Forbidden("this token may not charge " + bucket)
		}
	}
	held := quota.HeldLabels(hold)
	for label, value := range holder(ctx).LabelsOf() {
		value = value[:min(len(value), quota.MaxValueBytes)]
		if required, counted := held[label]; counted && required != value {
			return huma.Error403Forbidden(fmt.Sprintf("this token charges for %s=%s, not for %s=%s",
				label, value, label, required))
		}
	}
	for _, cred := range s.Source().Config.Credentials {
		if err = work(s.budgetOf(cred)); !errors.Is(err, quota.ErrNoReservation) {
			break
		}
	}
	return err
}

// onlyBudgetOf returns the budget of the only credential that can have had the hold. It returns nil
// if several credentials have limits on its buckets, or none has.
func (s *Server) onlyBudgetOf(hold string) (only *quota.Budget) {
	buckets, _ := quota.HeldBuckets(hold)
	all := s.Source().Config.Credentials
	for _, cred := range all {
		b := s.budgetOf(cred)
		unlimited := func(bucket string) bool { return !b.Limited(bucket) }
		if len(all) > 1 && slices.ContainsFunc(buckets, unlimited) {
			continue
		}
		if only != nil {
			return nil
		}
		only = b
	}
	return only
}

func parseTTL(text string) (time.Duration, error) {
	ttl, err := words.ParseSpan(text)
	if err != nil || ttl < time.Millisecond {
		return 0, huma.Error422UnprocessableEntity("ttl: must be a duration such as 90s, 10m or 2d")
	}
	return ttl, nil
}

// denial is the response to a denied charge: a problem (RFC 9457) with the fields of the decision.
type denial struct {
	limit.Problem
	report.Decision
}

func (d *denial) Error() string { return d.Detail }

// GetStatus implements huma.StatusError.
func (d *denial) GetStatus() int { return d.Status }

// ContentType implements huma.ContentTypeFilter.
func (d *denial) ContentType(string) string { return problemJSON }

// denied returns the response to a charge that was denied or failed, or nil if it was allowed.
func denied(b *quota.Budget, d quota.Decision, call quota.Call, err error) error {
	out := &denial{Decision: report.NewDecision(d, call.DryRun), Problem: limit.Problem{
		Type: limit.QuotaExceeded, Title: "Quota exhausted", Status: http.StatusTooManyRequests}}
	switch {
	case err != nil && d.Never:
		out.Title, out.Status = "Cost exceeds a limit", http.StatusUnprocessableEntity
		out.Detail = err.Error()
		return out
	case err != nil || d.Allowed:
		return err
	}
	out.Detail, out.Violated = (&quota.DeniedError{Decision: d}).Error(), []string{d.Limit}
	header := http.Header{}
	limit.SetQuotaHeader(header, b, d, call.Manual, d.Limit)
	if !d.RetryAt.IsZero() {
		header.Set("Retry-After", strconv.FormatInt(words.Seconds(d.RetryAfter()), 10))
	}
	return huma.ErrorWithHeaders(out, header)
}
