package meter

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// A resumable upload is one call in many requests. The first is charged, and its response has a
// Location for the media. The gate marks that URL as paid and does not charge requests to marked
// URLs, so it has to store nothing. An upload that was started elsewhere has no mark. It is charged
// once, as a new upload, because its idempotency key is a digest of the URL.

// paidParam is the parameter that marks the URL of an upload that was charged when it began.
const paidParam = "quota_paid"

// part is the role of a request in a resumable upload.
type part int

const (
	whole  part = iota // begins an upload, or is unrelated
	unpaid             // continues an upload that was started elsewhere
	paid               // continues an upload that was charged at its start
)

// partOf returns the role of a request that has not been charged yet.
func (t *Transport) partOf(r *http.Request) part {
	_, continues := t.Table.Session(r)
	switch {
	case continues && r.URL.Query().Has(paidParam):
		return paid
	case continues && costs.Resumable(r):
		return unpaid
	}
	return whole // it may begin an upload with an ID chosen by the client
}

// charge charges the request, unless it continues an upload that was charged when it started.
func (e *exchange) charge() (err error) {
	b, call := e.gate.Budget, e.call
	if e.part == paid {
		costs, err := b.Costs(call)
		e.decision = quota.Decision{Allowed: true, Replayed: true, Units: quota.UnitsOf(costs)}
		return err
	}
	if e.part == unpaid && call.Key == "" {
		query := e.r.URL.Query()
		query.Del(paidParam) // the upload is the same with and without our mark
		sum := sha256.Sum256([]byte(e.r.URL.EscapedPath() + "?" + query.Encode()))
		call.Key = "upload-" + hex.EncodeToString(sum[:16])
	}
	e.decision, e.cancel, err = b.Spend(e.r.Context(), call)
	if d := &e.decision; d.Replayed {
		d.At = time.Time{} // the response describes the present, not the first charge
		if err == nil && e.part == whole {
			err = errKeyPaid
		}
	}
	return err
}

// markSession marks the Location of a response that starts or moves an upload, and changes its host
// to the upstream's.
func (t *Transport) markSession(r *http.Request, resp *http.Response, p part) {
	location := resp.Header.Get("Location")
	to, err := r.URL.Parse(location)
	if err != nil || location == "" {
		return
	}
	put := &http.Request{Method: http.MethodPut, URL: to}
	if _, session := t.Table.Session(put); !session {
		return
	}
	to.Scheme, to.Host, to.User = r.URL.Scheme, r.URL.Host, nil
	query := to.Query()
	for _, name := range append(t.Table.Credential.AllParams(), paidParam) {
		query.Del(name)
	}
	if p != unpaid {
		query.Set(paidParam, "1")
	}
	to.RawQuery = query.Encode()
	resp.Header.Set("Location", to.String())
}
