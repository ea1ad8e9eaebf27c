package meter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/quota"
)

// Lesson is what an answer of the upstream taught: that a bucket is exhausted until its reset.
type Lesson struct {
	// Bucket is "" when the answer does not say: then it is the default one if the request was
	// charged to it, else the first that it was charged to.
	Bucket string
	Reset  quota.Window // the upstream's day
}

// maxAnswer is how many bytes of an error body are read; the rest is dropped.
const maxAnswer = 1 << 20

// learn reads an answer that is an error and suspends the bucket that is exhausted according to it.
// The body is put back for the client to read, without the key: some errors name it, as in
// "Consumer 'api_key:…' has been suspended".
func (t *Transport) learn(ctx context.Context, d quota.Decision, resp *http.Response,
	key string) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	resp.Body.Close()
	if err != nil {
		return fmt.Errorf("answer %d of the upstream broke off: %w", resp.StatusCode, err)
	}
	body = []byte(withoutKey(string(body), key))
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength, resp.TransferEncoding = int64(len(body)), nil
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	if lesson, ok := t.Learn(resp.StatusCode, body); ok {
		_, byDefault := d.Units[quota.DefaultBucket]
		if lesson.Bucket == "" && byDefault {
			lesson.Bucket = quota.DefaultBucket
		} else if lesson.Bucket == "" {
			lesson.Bucket = slices.Min(slices.Collect(maps.Keys(d.Units)))
		}
		t.suspend(ctx, d, lesson)
	}
	return nil
}

func withoutKey(text, key string) string {
	if key == "" {
		return text
	}
	return strings.ReplaceAll(text, key, "(not shown)")
}

// hideKey takes the key out of the headers of an answer that repeats it.
func hideKey(h http.Header, key string) {
	for _, values := range h {
		for i := range values {
			values[i] = withoutKey(values[i], key)
		}
	}
}

// suspend closes the bucket until the reset of the day in which the request was charged. An answer
// that arrives after that reset must not close the new day, nor open what was closed in it.
func (t *Transport) suspend(ctx context.Context, d quota.Decision, lesson Lesson) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer done()
	now, err := t.Budget.Ledger.Time(ctx)
	at := d.At
	if at.IsZero() { // the request was charged with another
		at = now
	}
	_, until := lesson.Reset.Bounds(at)
	log := t.Log.With("bucket", lesson.Bucket, "until", until.UTC())
	if err == nil && !until.After(now) {
		log.Info("the upstream reported an exhausted bucket, but for a day that has ended")
		return
	}
	if err == nil {
		err = t.Budget.Ledger.Suspend(ctx, t.Budget.Credential, lesson.Bucket, until)
	}
	if err != nil {
		log.Error("cannot suspend the bucket that the upstream reports as exhausted", "error", err)
		return
	}
	log.Warn("the upstream reports an exhausted bucket: suspended until its reset")
}
