package standin

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
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
	block, _ := pem.Decode([]byte(file.Key))
	if block == nil {
		return nil, errors.New("has no private key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := key.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("has no RSA key")
	}
	return &ServiceAccount{file.Email, &private.PublicKey}, nil
}

// claims are those of the JWT of RFC 7523.
type claims struct {
	Issuer   string `json:"iss"`
	Scope    string `json:"scope"`
	Audience string `json:"aud"`
	Issued   int64  `json:"iat"`
	Expires  int64  `json:"exp"`
}

// tokenLife is the validity of a token.
const tokenLife = time.Hour

// token serves POST /token: it issues a token for a JWT.
func (s *YouTube) token(c *call) {
	scope, wrong := s.checkGrant(c.r)
	if wrong == "" && s.cloudFault() == "key-deleted" {
		wrong = "Invalid JWT Signature."
	}
	if wrong != "" {
		c.json(http.StatusBadRequest, object{"error": "invalid_grant", "error_description": wrong})
		return
	}
	token := "standin." + rand.Text()
	unlock := s.locked()
	s.tokens[token] = granted{strings.Fields(scope), s.engine.now().Add(tokenLife)}
	unlock()
	c.ok(object{"access_token": token, "token_type": "Bearer",
		"expires_in": int64(tokenLife.Seconds())})
}

// granted is a token's scope and expiry.
type granted struct {
	scopes  []string
	expires time.Time
}

// checkGrant returns the scope of a signed token request, or what is wrong with it.
func (s *YouTube) checkGrant(r *http.Request) (scope, wrong string) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxForm)
	if r.Method != http.MethodPost ||
		r.PostFormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return "", "Invalid grant_type"
	}
	signed := r.PostFormValue("assertion")
	parts := strings.Split(signed, ".")
	if len(parts) != 3 {
		return "", "Invalid JWT"
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	var c claims
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !decodePart(parts[0], &header) || !decodePart(parts[1], &c) ||
		header.Algorithm != "RS256" {
		return "", "Invalid JWT"
	}
	is := func(a *ServiceAccount) bool { return a.Email == c.Issuer }
	i := slices.IndexFunc(s.Cloud.Accounts, is)
	if i < 0 {
		return "", "Invalid grant: account not found"
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(s.Cloud.Accounts[i].Key, crypto.SHA256, sum[:], signature) != nil {
		return "", "Invalid JWT Signature."
	}
	// The real clock, which is the client's: with an advanced one the stand-in would refuse every
	// request.
	now := time.Now().Unix()
	switch {
	case !strings.HasSuffix(c.Audience, "/token"):
		return "", "Invalid JWT: Failed audience check."
	case c.Expires <= now, c.Issued > now+300, c.Expires > c.Issued+3700:
		return "", "Invalid JWT: Token must be a short-lived token (60 minutes) and in a " +
			"reasonable timeframe. Check your iat and exp values in the JWT claim."
	}
	return c.Scope, ""
}

func decodePart(text string, into any) bool {
	body, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && json.Unmarshal(body, into) == nil
}

// mayRead reports whether the request has a token for a service.
func (s *YouTube) mayRead(r *http.Request, of service) bool {
	defer s.locked()()
	t, ok := s.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	return ok && s.engine.now().Before(t.expires) &&
		slices.ContainsFunc(t.scopes, func(scope string) bool {
			return slices.Contains(of.scopes, strings.TrimPrefix(scope, oauthScope))
		})
}
