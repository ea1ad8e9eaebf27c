package standin

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// ServiceAccount may read the metering. It authenticates with a signed JWT.
type ServiceAccount struct {
	Email string
	Key   *rsa.PublicKey
}

// accountKey is the key file that Google issues.
type accountKey struct {
	Type     string `json:"type"`
	Project  string `json:"project_id"`
	KeyID    string `json:"private_key_id"`
	Key      string `json:"private_key"`
	Email    string `json:"client_email"`
	TokenURI string `json:"token_uri"`
}

// NewAccountKey returns a service account of a project, and its key file. tokens is the URL where
// the stand-in issues tokens.
func NewAccountKey(project, tokens string) (*ServiceAccount, []byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	file := accountKey{"service_account", project, "standin", string(text),
		"quota-reader@" + project + ".iam.gserviceaccount.com", tokens}
	body, err := json.MarshalIndent(file, "", "  ")
	return &ServiceAccount{file.Email, &key.PublicKey}, append(body, '\n'), err
}

// ParseAccountKey reads a key file.
func ParseAccountKey(text []byte) (*ServiceAccount, error) {
	var file accountKey
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, errors.New("is not the key of a service account")
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(file.Key))
	if err != nil {
		return nil, errors.New("has no RSA key")
	}
	return &ServiceAccount{file.Email, &key.PublicKey}, nil
}

// tokenLife is the validity of a token.
const tokenLife = time.Hour

// token serves POST /token: it issues a token for a JWT.
func (s *YouTube) token(c *call) {
	scope := s.checkGrant(c)
	if s.Cloud.Fault == "key-deleted" {
		c.failGrant("Invalid JWT Signature.")
	}
	token := "standin." + rand.Text()
	unlock := s.locked()
	s.tokens[token] = granted{strings.Fields(scope), s.engine.now().Add(tokenLife)}
	unlock()
	c.ok(object{"access_token": token, "token_type": "Bearer",
		"expires_in": int64(tokenLife.Seconds())})
}

// failGrant refuses a token and ends the handler.
func (c *call) failGrant(problem string) {
	c.json(http.StatusBadRequest, object{"error": "invalid_grant", "error_description": problem})
	panic(errEnded)
}

// granted is a token's scope and expiry.
type granted struct {
	scopes  []string
	expires time.Time
}

// claims are the claims of a JWT, as in RFC 7523.
type claims struct {
	Scope string `json:"scope"`
	jwt.RegisteredClaims
}

// checkGrant returns the scope of a token request. It refuses a request that is not signed with an
// account's key.
func (s *YouTube) checkGrant(c *call) (scope string) {
	c.r.Body = http.MaxBytesReader(nil, c.r.Body, maxForm)
	if c.r.Method != http.MethodPost ||
		c.r.PostFormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		c.failGrant("Invalid grant_type")
	}
	var claim claims
	keyOf := func(*jwt.Token) (any, error) {
		for _, a := range s.Cloud.Accounts {
			if a.Email == claim.Issuer {
				return a.Key, nil
			}
		}
		return nil, errors.New("account not found")
	}
	// The parser uses the real clock, as the client does: with the stand-in's clock, which tests
	// advance, it would refuse every request.
	_, err := jwt.ParseWithClaims(c.r.PostFormValue("assertion"), &claim, keyOf,
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithExpirationRequired(), jwt.WithIssuedAt())
	isShort := claim.ExpiresAt != nil && claim.IssuedAt != nil &&
		claim.ExpiresAt.Before(claim.IssuedAt.Add(tokenLife+100*time.Second))
	switch {
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		c.failGrant("Invalid JWT Signature.")
	case err != nil:
		c.failGrant("Invalid JWT: " + err.Error())
	case !isShort:
		c.failGrant("Invalid JWT: it must be valid for an hour at most")
	case len(claim.Audience) != 1 || !strings.HasSuffix(claim.Audience[0], "/token"):
		c.failGrant("Invalid JWT: audience")
	}
	return claim.Scope
}

// mayRead reports whether the request has a token for a service.
func (s *YouTube) mayRead(r *http.Request, requested service) bool {
	defer s.locked()()
	t, ok := s.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	return ok && s.engine.now().Before(t.expires) &&
		slices.ContainsFunc(t.scopes, func(scope string) bool {
			scope = strings.TrimPrefix(scope, "https://www.googleapis.com/auth/")
			return slices.Contains(requested.Scopes, scope)
		})
}
