package meter

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// A resumable upload is one call in many requests. The first is charged, and the upstream answers
// with a Location for the media. That URL is signed with the API key before the client gets it, and
// requests to a signed URL are not charged, by any process with that key: nothing has to be stored.
// A request of an upload without a valid signature (it was started elsewhere, or with another key)
// is charged as a new upload, once: its idempotency key is a digest of the URL.

// paidParam is the parameter that holds the signature of an upload's URL.
const paidParam = "quota_paid"

// part is what a request has to do with a resumable upload.
type part int

const (
	whole  part = iota // nothing, or it begins one
	unpaid             // it says that it continues one, which was not surely charged
	paid               // it continues one that was charged when it began
)

// partOf looks at a request before it is charged. secret is the API key.
func (t *Transport) partOf(r *http.Request, secret string) part {
	if _, ok := t.Table.Session(r); !ok {
		return whole
	}
	given := r.URL.Query()[paidParam]
	if len(given) == 1 && hmac.Equal([]byte(given[0]), []byte(t.signature(r.URL, secret))) {
		return paid
	}
	if !costs.Resumable(r) { // it may be a new one, under an ID that nobody gave
		return whole
	}
	return unpaid
}

// charge charges a request, unless it continues an upload that was charged when it started.
func (t *Transport) charge(r *http.Request, call quota.Call, p part) (d quota.Decision,
	cancel func(context.Context) error, err error) {
	if p == paid {
		costs, err := t.Budget.Costs(call)
		d := quota.Decision{Allowed: true, Replayed: true, Units: quota.UnitsOf(costs)}
		return d, func(context.Context) error { return nil }, err
	}
	if p == unpaid && call.Key == "" {
		call.Key = "upload-" + addressDigest(r.URL)
	}
	d, cancel, err = t.Budget.Spend(r.Context(), call)
	if err == nil && d.Replayed && p == whole {
		err = errKeyPaid
	}
	if d.Replayed {
		d.At = time.Time{} // what the upstream says of it is of now
	}
	return d, cancel, err
}

// signSession signs the Location of an answer that starts an upload, and points it at the upstream
// that requests are sent to. A Location that moves a paid upload is signed as well. One that names
// another upload, or in the answer to a call of another method, is not: no request was charged for
// that.
func (t *Transport) signSession(r *http.Request, resp *http.Response, p part, secret string) {
	location := resp.Header.Get("Location")
	to, err := r.URL.Parse(location)
	if err != nil || location == "" {
		return
	}
	method, ok := t.sessionAt(*to, to.RawQuery)
	if !ok {
		return
	}
	asked, ok := t.sessionAt(*r.URL, to.RawQuery)
	begins := p == whole && ok && asked == method
	to.Scheme, to.Host, to.User = r.URL.Scheme, r.URL.Host, nil
	query := to.Query()
	for _, name := range append(t.secretParams(), paidParam) {
		query.Del(name)
	}
	to.RawQuery = query.Encode()
	same := to.Path == r.URL.Path && query.Get("upload_id") == r.URL.Query().Get("upload_id")
	if begins || p == paid && same {
		to.RawQuery += "&" + paidParam + "=" + t.signature(to, secret)
	}
	resp.Header.Set("Location", to.String())
}

// sessionAt is the method that an upload at the address, with the query, is a call of.
func (t *Transport) sessionAt(address url.URL, query string) (method string, ok bool) {
	address.RawQuery = query
	return t.Table.Session(&http.Request{Method: http.MethodPut, URL: &address})
}

// signature proves that an upload to the URL was charged to the credential.
func (t *Transport) signature(to *url.URL, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "upload of %s: %s", t.Budget.Credential, addressDigest(to))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// addressDigest is a digest of an upload's path and parameters.
func addressDigest(to *url.URL) string {
	query := to.Query()
	query.Del(paidParam)
	sum := sha256.Sum256([]byte(to.EscapedPath() + "?" + query.Encode()))
	return hex.EncodeToString(sum[:16])
}

// withoutSignature is a query as the upstream gave it.
func withoutSignature(raw string) string {
	pairs := slices.DeleteFunc(strings.Split(raw, "&"), func(pair string) bool {
		return strings.HasPrefix(pair, paidParam+"=")
	})
	return strings.Join(pairs, "&")
}
