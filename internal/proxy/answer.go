package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// domain is whose errors these are, as Google's clients show it.
const domain = "quotabudget"

// refusal is why a request has no answer of the upstream, in words for whoever sent it.
type refusal struct {
	status int
	reason string // for programs, in Google's spelling: quotaExceeded
	title  string
	detail string      // what happened, and what to do
	header http.Header // to be sent with it
	limit  string      // of a denial
	retry  string      // of a denial: when
	err    error       // behind it
}

func refusef(status int, reason, title, format string, args ...any) *refusal {
	return &refusal{status: status, reason: reason, title: title,
		detail: fmt.Sprintf(format, args...)}
}

// Error is the detail.
func (f *refusal) Error() string { return f.detail }

// Unwrap is the error behind it.
func (f *refusal) Unwrap() error { return f.err }

// document is the body of a refusal: Google's form of an error, for the clients that look for it,
// and an RFC 9457 problem.
type document struct {
	Error   googleError      `json:"error"`
	Type    string           `json:"type"`
	Title   string           `json:"title"`
	Status  int              `json:"status"`
	Detail  string           `json:"detail"`
	Limit   string           `json:"limit,omitempty"`
	Retry   string           `json:"retry_at,omitempty"`
	After   int64            `json:"retry_after_seconds,omitempty"`
	Charged map[string]int64 `json:"charged"` // units by bucket that the request took all the same
}

type googleError struct {
	Code    int           `json:"code"`
	Message string        `json:"message"`
	Status  string        `json:"status"`
	Errors  []googleItem  `json:"errors"`
	Details []errorDetail `json:"details"`
}

type googleItem struct {
	Message string `json:"message"`
	Domain  string `json:"domain"`
	Reason  string `json:"reason"`
}

// errorDetail is a google.rpc.ErrorInfo.
type errorDetail struct {
	Type     string            `json:"@type"`
	Reason   string            `json:"reason"`
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

const problemType = "application/problem+json"

// refuse tells the caller why its request has no answer of the upstream.
func (x *exchange) refuse(err error) {
	f := refusalOf(err)
	x.outcome, x.failure = f.outcome(), err
	h := x.w.Header()
	for name, values := range f.header {
		h[name] = values
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	if wantsProblem(x.r) {
		h.Set("Content-Type", problemType)
	}
	h.Add("Vary", "Accept")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	x.w.WriteHeader(f.status)
	json.NewEncoder(x.w).Encode(f.document(x.charged()))
}

// statusGone is logged where there is nobody to answer.
const statusGone = 499

// outcome is what the log and the metrics call it.
func (f *refusal) outcome() string {
	switch {
	case f.limit != "":
		return outcomeDenied
	case f.status == statusGone:
		return outcomeBroken
	case f.status >= http.StatusInternalServerError && f.status != http.StatusServiceUnavailable:
		return outcomeFailed
	}
	return outcomeRefused
}

func (f *refusal) document(charged map[string]int64) document {
	detail := f.detail
	if len(charged) > 0 {
		detail += "; the request was charged, since it may have reached the upstream"
	}
	after, _ := strconv.ParseInt(f.header.Get("Retry-After"), 10, 64)
	metadata := map[string]string{}
	if f.limit != "" {
		metadata["limit"], metadata["retry_at"] = f.limit, f.retry
	}
	return document{
		Error: googleError{
			Code: f.status, Message: detail, Status: rpcStatus(f.status),
			Errors: []googleItem{{detail, domain, f.reason}},
			Details: []errorDetail{{
				Type: "type.googleapis.com/google.rpc.ErrorInfo", Reason: upperSnake(f.reason),
				Domain: domain, Metadata: metadata,
			}},
		},
		Type: "about:blank", Title: f.title, Status: f.status, Detail: detail,
		Limit: f.limit, Retry: f.retry, After: after, Charged: charged,
	}
}

// wantsProblem reports whether the caller asked for application/problem+json by name.
func wantsProblem(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err == nil && kind == problemType && params["q"] != "0" {
			return true
		}
	}
	return false
}

// refusalOf puts an error into words. One that it does not know is one of the way to the upstream.
func refusalOf(err error) *refusal {
	if f, ok := errors.AsType[*refusal](err); ok {
		return f
	}
	if denied, ok := errors.AsType[*quota.DeniedError](err); ok {
		return denial(denied, err)
	}
	if wrong, ok := errors.AsType[*costs.VerbError](err); ok {
		f := refusef(http.StatusMethodNotAllowed, "methodNotAllowed", "method is not allowed", "%v",
			wrong)
		f.header = http.Header{"Allow": {strings.Join(wrong.Allowed, ", ")}}
		return f
	}
	if errors.Is(err, context.Canceled) {
		return refusef(statusGone, "callerGone", "caller went away",
			"the caller went away before there was an answer")
	}
	if unclear, ok := errors.AsType[*costs.AmbiguousError](err); ok {
		return ambiguous("%v", unclear)
	}
	for _, known := range knownRefusals() {
		if errors.Is(err, known.err) {
			known.detail = err.Error() + known.detail
			return &known
		}
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return &refusal{status: http.StatusGatewayTimeout, reason: "upstreamTimeout",
			title:  "upstream did not answer in time",
			detail: err.Error(), err: err}
	}
	return &refusal{status: http.StatusBadGateway, reason: "upstreamUnreachable",
		title:  "upstream cannot be reached",
		detail: err.Error(), err: err}
}

// ambiguous refuses what the upstream could take for another request than we do.
func ambiguous(format string, args ...any) *refusal {
	return refusef(http.StatusBadRequest, "ambiguousRequest", "request is ambiguous",
		"the upstream could read the request differently than it would be charged: "+format,
		args...)
}

// knownRefusals are the errors of the gate; detail is what is added to their own words. The first
// that fits counts.
func knownRefusals() []refusal {
	return []refusal{
		{status: http.StatusUnprocessableEntity, reason: "costExceedsLimit",
			title: "cost exceeds the limit", err: quota.ErrCostExceedsLimit},
		{status: http.StatusNotFound, reason: "unpriced", title: "method has no price",
			err:    quota.ErrUnpriced,
			detail: ": quotactl costs lists the methods with their paths"},
		{status: http.StatusNotFound, reason: "noBucket", title: "bucket has no limit",
			err: quota.ErrNoBucket},
		{status: http.StatusServiceUnavailable, reason: "ledgerUnreachable",
			title: "ledger cannot be reached", err: quota.ErrUnreachable},
		{status: http.StatusServiceUnavailable, reason: "ledgerUnusable",
			title: "ledger cannot be reached", err: quota.ErrLedgerUnusable},
		{status: http.StatusInternalServerError, reason: "notSent", title: "request was not sent",
			err: quota.ErrNotSent},
	}
}

// denial is the refusal of a charge that does not fit now. Its reason is the one that Google's
// clients take for a day that is spent, which they do not answer by sending the request again at
// once.
func denial(denied *quota.DeniedError, err error) *refusal {
	d := denied.Decision
	f := &refusal{status: http.StatusTooManyRequests, reason: "quotaExceeded",
		title: "quota exhausted", detail: err.Error(),
		limit: d.Limit, retry: d.RetryAt.UTC().Format("2006-01-02T15:04:05.000000Z"), err: err,
		header: http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(d.RetryAfter().Seconds())))}}}
	if d.Limit == quota.PaceName {
		f.reason, f.title = "heldBackByPace", "held back by the pace"
	}
	return f
}

// rpcStatus is the name of a google.rpc code that goes with a status of HTTP.
func rpcStatus(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusUnprocessableEntity:
		return "FAILED_PRECONDITION"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusInternalServerError:
		return "INTERNAL"
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return "DEADLINE_EXCEEDED"
	}
	return "INVALID_ARGUMENT"
}

// upperSnake is quotaExceeded as QUOTA_EXCEEDED.
func upperSnake(word string) string {
	var b strings.Builder
	for _, r := range word {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// clip keeps a foreign text short enough for a message.
func clip(text string) string {
	if len(text) > 100 {
		return strings.ToValidUTF8(text[:100], "") + "…"
	}
	return text
}
