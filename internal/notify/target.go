package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"quotabudget/internal/config"
	"quotabudget/internal/untrusted"
	"quotabudget/internal/words"
)

type target struct {
	name string // its key under notify:, part of the claim
	to   string // where notifications go, without secrets
	// deliver sends an event and returns the response. An error that is not a backoff.Permanent may
	// pass within seconds.
	deliver func(context.Context, Event) (string, error)
}

const attemptTime = 10 * time.Second

func targets(cfg *config.Config, environ []string) (all []target) {
	n := cfg.Notify
	if n.URL != "" {
		all = append(all, target{"url", n.Host(), webhook{n}.deliver})
	}
	if n.Mail != "" {
		all = append(all, target{"mail", n.Mail, func(ctx context.Context, e Event) (string, error) {
			return run(ctx, []string{sendmail(), "-i", n.Mail}, nil, e.mail(n.Mail))
		}})
	}
	if len(n.Command) > 0 { // the command reads the event as JSON from its input
		all = append(all, target{"command", n.Command[0],
			func(ctx context.Context, e Event) (string, error) {
				return run(ctx, n.Command, cfg.WithoutKeys(environ), append(e.json(), '\n'))
			}})
	}
	return all
}

// message is the JSON of an event. Slack and Mattermost show text. No key is called type, because
// Mattermost gives that one a meaning of its own.
type message struct {
	Text       string     `json:"text"`
	ID         string     `json:"id"`
	Event      string     `json:"event"`
	At         words.Time `json:"at"`
	Credential string     `json:"credential,omitempty"`
	Bucket     string     `json:"bucket,omitempty"`
	Limit      string     `json:"limit,omitempty"`
	Percent    int64      `json:"percent,omitempty"`
	Until      words.Time `json:"until"` // not sent again before
}

// inert replaces the characters that start mentions and links in Slack and Mattermost: model names
// and suspension reasons come from outside.
var inert = strings.NewReplacer("<", "‹", ">", "›", "@", "＠")

func (e Event) json() []byte {
	until := e.ends
	if until.IsZero() {
		until = e.at.Add(e.lasts)
	}
	m := message{Text: inert.Replace(words.Plain(e.Text)), ID: e.id, Event: e.Name,
		At: words.Time(e.at), Credential: e.Credential, Bucket: e.Bucket, Limit: e.Limit,
		Percent: e.Percent, Until: words.Time(until)}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // cannot happen: only texts, times and a number
	}
	return text
}

// webhook posts JSON to a URL, signed as Standard Webhooks requires.
type webhook struct{ config.Notify }

func (w webhook) deliver(ctx context.Context, e Event) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, attemptTime, errSlow)
	defer cancel()
	body := e.json()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return "", backoff.Permanent(errors.New("url under notify: is not valid"))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "quotabudget")
	if err := w.sign(r.Header, e.id, time.Now(), body); err != nil {
		return "", backoff.Permanent(err)
	}
	response, text, err := untrusted.Fetch(http.Client{}, r, 4<<10)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if response == nil {
		return "", fmt.Errorf("%s: %w", r.URL.Host, err)
	}
	answer := w.clean(response.Status + " " + string(text))
	switch code := response.StatusCode; {
	case code/100 == 2:
		return answer, nil
	case code/100 == 3:
		return answer, backoff.Permanent(fmt.Errorf("%s redirects (%s): write the address that it "+
			"redirects to", r.URL.Host, response.Status))
	case code/100 == 4 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests:
		return answer, backoff.Permanent(&refusedError{fmt.Errorf("%s responds with %s: check url "+
			"and secret", r.URL.Host, answer)})
	case code == http.StatusInternalServerError:
		return answer, &refusedError{fmt.Errorf("%s responds with %s", r.URL.Host, answer)}
	}
	return answer, fmt.Errorf("%s responds with %s", r.URL.Host, answer)
}

// refusedError reports that a target was reached but refused an event. It may accept other events.
type refusedError struct{ error }

var errSlow = fmt.Errorf("no response within %s", attemptTime)

// sign sets the headers of Standard Webhooks. Without a secret there is no signature.
func (w webhook) sign(h http.Header, id string, now time.Time, body []byte) error {
	at := strconv.FormatInt(now.Unix(), 10)
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", at)
	if !w.Secret.Placed() {
		return nil
	}
	key, err := w.key()
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}

func (w webhook) key() ([]byte, error) {
	text, err := w.Secret.Key()
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, fmt.Errorf("secret of notify: %s must be whsec_ and base64, such as "+
			`"whsec_$(openssl rand -base64 32)"`, w.Secret)
	}
	return key, nil
}

// clean makes a response safe to show: a receiver can repeat the path of the URL.
func (w webhook) clean(text string) string {
	if u, err := url.Parse(w.URL); err == nil {
		for _, part := range strings.FieldsFunc(u.RequestURI(), func(r rune) bool {
			return strings.ContainsRune("/?&=", r)
		}) {
			if len(part) >= 6 {
				text = strings.ReplaceAll(text, part, "…")
			}
		}
	}
	return strings.TrimSpace(words.Clip(words.Plain(text)))
}

// sendmail returns the first sendmail program that exists: cron's PATH lacks /usr/sbin.
func sendmail() string {
	for _, path := range []string{"sendmail", "/usr/sbin/sendmail", "/usr/lib/sendmail"} {
		if program, err := exec.LookPath(path); err == nil {
			return program
		}
	}
	return "sendmail"
}

// mail returns an email to address with the event.
func (e Event) mail(address string) []byte {
	text := words.Plain(e.Text)
	subject, _, _ := strings.Cut(text, ";")
	return fmt.Appendf(nil, "To: %s\nSubject: %s\nMessage-ID: <%s@quotabudget>\n"+
		"Auto-Submitted: auto-generated\nMIME-Version: 1.0\n"+
		"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n%s\n",
		address, mime.QEncoding.Encode("utf-8", subject), e.id, text)
}

// run runs a program, and returns the end of its output.
func run(ctx context.Context, args, environ []string, input []byte) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, attemptTime, errSlow)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	var out tail
	c.Stdin, c.Stdout, c.Stderr, c.Env = bytes.NewReader(input), &out, &out, environ
	c.WaitDelay = time.Second // its children may keep the pipes open
	err := c.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	text := words.Clip(words.Plain(strings.TrimSpace(string(out))))
	if err != nil {
		_, refused := errors.AsType[*exec.ExitError](err)
		err = errors.New(strings.TrimSuffix(fmt.Sprintf("%s: %v: %s", args[0], err, text), ": "))
		if refused {
			err = &refusedError{err}
		}
	}
	return text, err
}

// tail is an io.Writer that keeps the end of its input.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = (*t)[max(0, len(*t)-1024):]
	return len(p), nil
}

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
	e.nameID(now)
	for _, t := range targets(cfg, environ) {
		r := Result{Target: t.name, To: t.to, ID: e.id}
		answer, err := t.deliver(ctx, e)
		r.Answer, r.Sent = answer, err == nil
		if err != nil {
			r.Error, r.Do = new(err.Error()), remedy(t.name, webhook{cfg.Notify})
		}
		all = append(all, r)
	}
	return all
}

// remedy returns what to do about a target that failed.
func remedy(name string, w webhook) string {
	if name != "url" || !w.Secret.Placed() {
		return "correct " + name + " under notify:"
	}
	if _, err := w.Secret.Key(); err != nil {
		return w.Secret.Advice()
	}
	if _, err := w.key(); err != nil {
		return "correct the secret: " + w.Secret.String()
	}
	return "correct url or secret under notify:"
}
