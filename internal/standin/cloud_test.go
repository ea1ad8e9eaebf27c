package standin

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// newAccount returns a stand-in with a service account, and the account's key.
func newAccount(t *testing.T) (*YouTube, *rsa.PrivateKey) {
	t.Helper()
	account, file, err := NewAccountKey("p1", "https://oauth2.googleapis.com/token")
	must(t, err)
	read, err := ParseAccountKey(file)
	if err != nil || !read.Key.Equal(account.Key) {
		t.Fatalf("%+v, %v", read, err)
	}
	var fields accountKey
	must(t, json.Unmarshal(file, &fields))
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(fields.Key))
	must(t, err)
	return &YouTube{Cloud: Cloud{Accounts: []*ServiceAccount{read}}}, key
}

// grant requests a token, with a valid assertion but for the changed claims or algorithm.
func grant(t *testing.T, s *YouTube, key *rsa.PrivateKey, changed jwt.MapClaims) result {
	t.Helper()
	now := time.Now().Unix()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iss": s.Cloud.Accounts[0].Email, "iat": now, "exp": now + 3600,
		"scope": "https://www.googleapis.com/auth/monitoring.read",
		"aud":   "https://oauth2.googleapis.com/token"})
	maps.Copy(token.Claims.(jwt.MapClaims), changed)
	if algorithm, ok := changed["alg"]; ok {
		token.Header["alg"] = algorithm
	}
	assertion, err := token.SignedString(key)
	must(t, err)
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
		"assertion": {assertion}}
	return get(t, start(t, s), "POST /token "+form.Encode(),
		"Content-Type: application/x-www-form-urlencoded")
}

// TestToken: the stand-in issues a token only for a short JWT signed with the account's key. The JWT
// library checks its other times and its algorithm.
func TestToken(t *testing.T) {
	s, key := newAccount(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	now := time.Now().Unix()
	for name, c := range map[string]struct {
		changed jwt.MapClaims
		key     *rsa.PrivateKey
		want    string // of the refusal; "" for a token
	}{
		"good":            {nil, key, ""},
		"another key":     {nil, other, "Invalid JWT Signature"},
		"another account": {jwt.MapClaims{"iss": "x"}, key, "account not found"},
		"a shared secret": {jwt.MapClaims{"alg": "HS256"}, key, "Invalid JWT"},
		"too long":        {jwt.MapClaims{"exp": now + 7200}, key, "an hour"},
		"for another":     {jwt.MapClaims{"aud": "https://x/"}, key, "audience"},
	} {
		r := grant(t, s, c.key, c.changed)
		refused := r.status == 400 && strings.Contains(r.body, "invalid_grant") &&
			strings.Contains(r.body, c.want)
		given := r.status == 200 && strings.Contains(r.body, `"access_token"`)
		if c.want == "" && !given || c.want != "" && !refused {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestCloudNeedsAToken: requests without a token, or with one of another scope, are refused and
// not counted.
func TestCloudNeedsAToken(t *testing.T) {
	s, key := newAccount(t)
	var token struct {
		Access string `json:"access_token"`
	}
	must(t, json.Unmarshal([]byte(grant(t, s, key, nil).body), &token))
	address := start(t, s)
	for _, token := range []string{"", "x", token.Access} {
		r := get(t, address, "GET /v1beta1/projects/p1/services/youtube.googleapis.com/"+
			"consumerQuotaMetrics", "Authorization: Bearer "+token)
		if r.status != http.StatusUnauthorized {
			t.Errorf("with %q: %d", token, r.status)
		}
	}
	if c := s.Counts(); c.Requests != 0 {
		t.Errorf("%+v", c)
	}
}
