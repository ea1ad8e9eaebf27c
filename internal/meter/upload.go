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

	"quotabudget/internal/quota"
)

// A resumable upload is one call in many requests. The first is charged, and the upstream answers it
// with a Location to which the media goes. That address is signed with the API key before it is
// handed on, and a request to it is sent without a charge: by any process with that key, and
// nothing has to be stored. A request of an upload that is not signed so (it was begun elsewhere, or
// with another key) is charged as an upload of its own, once: its idempotency key is made from the
// address.

// paidParam is the parameter that holds the signature of an address.
const paidParam = "quota_paid"

// part is what a request has to do with a resumable upload.
type part struct {
	continues bool // one that another request began
	paid      bool // and that was charged then
	key       string
}

// partOf looks at a request before it is charged. secret is the API key.
func (t *Transport) partOf(r *http.Request, secret string) part {
	if t.Session == nil {
		return part{}
	}
	if _, ok := t.Session(r); !ok {
		return part{}
	}
	given := r.URL.Query()[paidParam]
	return part{
		continues: true,
		paid:      len(given) == 1 && hmac.Equal([]byte(given[0]), []byte(t.signature(r.URL, secret))),
		key:       "upload-" + addressDigest(r.URL),
	}
}

// charge charges a request, but for one whose upload was charged when it began.
func (t *Transport) charge(
	ctx context.Context, call quota.Call, p part,
) (d quota.Decision, cancel func(context.Context) error, err error) {
	if p.paid {
		costs, err := t.Budget.Costs(call)
		d := quota.Decision{Allowed: true, Replayed: true, Units: quota.UnitsOf(costs)}
		return d, func(context.Context) error { return nil }, err
	}
	if p.continues && call.Key == "" {
		call.Key = p.key
	}
	d, cancel, err = t.Budget.Spend(ctx, call)
	if err == nil && d.Replayed && !p.continues {
		err = fmt.Errorf("%w: one key pays for one request", quota.ErrKeyReused)
	}
	if d.Replayed {
		d.At = time.Time{} // what the upstream says of it is of now
	}
	return d, cancel, err
}

// signSession makes the answer to a request that began an upload say where the media goes, on the
// upstream that requests are sent to, and that it is paid for. So does an answer on the way that gives
// the same upload another address; one that begins an upload on the quiet does not.
func (t *Transport) signSession(r *http.Request, resp *http.Response, p part, secret string) {
	location := resp.Header.Get("Location")
	if t.Session == nil || location == "" {
		return
	}
	to, err := r.URL.Parse(location)
	if err != nil {
		return
	}
	if _, ok := t.Session(&http.Request{Method: http.MethodPut, URL: to}); !ok {
		return
	}
	to.Scheme, to.Host, to.User = r.URL.Scheme, r.URL.Host, nil
	query := to.Query()
	for _, name := range append(SecretParams(), paidParam) {
		query.Del(name)
	}
	to.RawQuery = query.Encode()
	same := to.Path == r.URL.Path && query.Get("upload_id") == r.URL.Query().Get("upload_id")
	if !p.continues || p.paid && same {
		to.RawQuery += "&" + paidParam + "=" + t.signature(to, secret)
	}
	resp.Header.Set("Location", to.String())
}

// signature says that an upload to the address was charged to the credential.
func (t *Transport) signature(to *url.URL, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "upload of %s: %s", t.Budget.Credential, addressDigest(to))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// addressDigest is a digest of all that tells an upload's address: its path and its parameters.
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
