package bill

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

	"quotabudget/internal/costs"
	"quotabudget/internal/untrusted"
)

// Account is a service account with its key. Printing it does not print the key.
type Account struct {
	Email   string
	Project string // the project it belongs to

	keyID, key, tokenURL string
}

// MaxKey is the maximum size of a key file in bytes.
const MaxKey = 16 << 10

// scopes are the rights of the tokens: read-only. The account's roles decide what it may read.
var scopes = []string{
	"https://www.googleapis.com/auth/monitoring.read",
	"https://www.googleapis.com/auth/cloud-platform.read-only",
}

// ParseAccount reads the key of a service account, the JSON file that Google issues. No error
// contains any of it.
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
		return nil, errors.New("is not the key of a service account: its type must be service_account")
	case key.Email == "":
		return nil, errors.New("has no client_email")
	case !readable(key.Key):
		return nil, errors.New("has no valid private_key")
	}
	a := &Account{key.Email, key.Project, key.KeyID, key.Key, key.TokenURI}
	if a.tokenURL == "" {
		a.tokenURL = "https://oauth2.googleapis.com/token"
	}
	if _, err := costs.ParseEndpoint(a.tokenURL); err != nil {
		return nil, errors.New("has a token_uri that is not an https:// address")
	}
	return a, nil
}

// GoString returns the account's name, for %#v.
func (a Account) GoString() string { return a.Email }

// String returns the account's name.
func (a Account) String() string { return a.Email }

// timeout is the timeout of one request.
const timeout = 30 * time.Second

// client returns a client that sends tokens of the account. Its requests for tokens follow no
// redirects, because the signed request must go only to the configured address.
func (a *Account) client(ctx context.Context, tokenURL string) *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	plain := &http.Client{Timeout: timeout, CheckRedirect: stay}
	config := jwt.Config{Email: a.Email, PrivateKey: []byte(a.key), PrivateKeyID: a.keyID,
		Scopes: scopes, TokenURL: tokenURL}
	c := config.Client(context.WithValue(ctx, oauth2.HTTPClient, plain))
	c.Timeout = timeout
	return c
}

// tokenError describes a refusal by the token server.
func tokenError(refused *oauth2.RetrieveError) error {
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(refused.Body, &said) // otherwise the status must do
	e := &Error{API: "the token server", Status: refused.Response.StatusCode,
		Reason: untrusted.Plain(said.Error), Message: untrusted.Plain(said.Description), Kind: BadKey}
	if e.Status >= 500 || e.Status == http.StatusTooManyRequests {
		e.Kind = Away
	}
	return e
}

// readable reports whether a private key can sign.
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
