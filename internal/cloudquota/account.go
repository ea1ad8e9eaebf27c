package cloudquota

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"quotabudget/internal/bounds"
	"quotabudget/internal/endpoint"
)

// Account is a service account, by its key. What prints it prints no key.
type Account struct {
	Email   string
	Project string // to which it belongs

	keyID, key, tokenURL string
}

// MaxKey is how many bytes a key file has at most.
const MaxKey = 16 << 10

// scopes are the rights that a token is asked for: to read, and nothing else. What the account may
// read is decided by its roles.
var scopes = []string{
	"https://www.googleapis.com/auth/monitoring.read",
	"https://www.googleapis.com/auth/cloud-platform.read-only",
}

// ParseAccount reads the key of a service account, the JSON file that Google gives out. No error
// repeats any of it.
func ParseAccount(text []byte) (*Account, error) {
	var key struct {
		Type     string `json:"type"`
		Project  string `json:"project_id"`
		KeyID    string `json:"private_key_id"`
		Key      string `json:"private_key"`
		Email    string `json:"client_email"`
		TokenURI string `json:"token_uri"`
	}
	if err := json.Unmarshal(text, &key); err != nil {
		return nil, errors.New("is not the JSON key of a service account")
	}
	switch {
	case key.Type != "service_account":
		return nil, errors.New("is not the key of a service account: its type is another")
	case key.Email == "":
		return nil, errors.New("has no client_email")
	case !readable(key.Key):
		return nil, errors.New("has no private_key that can be read")
	}
	a := &Account{key.Email, key.Project, key.KeyID, key.Key, key.TokenURI}
	if a.tokenURL == "" {
		a.tokenURL = "https://oauth2.googleapis.com/token"
	}
	if _, err := endpoint.Parse(a.tokenURL); err != nil {
		return nil, errors.New("has a token_uri that is not an https:// address")
	}
	return a, nil
}

// GoString names the account, for %#v.
func (a Account) GoString() string { return a.Email }

// String names the account.
func (a Account) String() string { return a.Email }

// timeout is how long one request may take.
const timeout = 30 * time.Second

// client sends requests with tokens of the account. It follows no redirects: a token is for the
// address that was asked.
func (a *Account) client(ctx context.Context, tokenURL string) *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	plain := &http.Client{Timeout: timeout, CheckRedirect: stay}
	config := jwt.Config{Email: a.Email, PrivateKey: []byte(a.key), PrivateKeyID: a.keyID,
		Scopes: scopes, TokenURL: tokenURL}
	c := config.Client(context.WithValue(ctx, oauth2.HTTPClient, plain))
	c.Timeout, c.CheckRedirect = timeout, stay
	return c
}

// tokenError is what became of a token.
func tokenError(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return nil
	}
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(refused.Body, &said) // else its status says enough
	e := &Error{API: "the token server", Status: refused.Response.StatusCode,
		Reason: bounds.Plain(said.Error), Message: bounds.Plain(said.Description), Kind: BadKey}
	if e.Status >= 500 || e.Status == http.StatusTooManyRequests {
		e.Kind = Away
	}
	return e
}

// readable reports whether a private key is one that can sign.
func readable(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	_, rsaKey := key.(*rsa.PrivateKey)
	return err == nil && rsaKey
}
