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
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestToken: the stand-in issues a token only for a JWT signed with the account's key.
func TestToken(t *testing.T) {
	account, file, err := NewAccountKey("p1", "https://oauth2.googleapis.com/token")
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseAccountKey(file)
	if err != nil || !read.Key.Equal(account.Key) {
		t.Fatalf("%+v, %v", read, err)
	}
	key := privateKey(t, file)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &YouTube{Cloud: Cloud{Accounts: []*ServiceAccount{read}}}
	now := time.Now().Unix()
	good := func() (header, claims map[string]any) {
		return map[string]any{"alg": "RS256", "typ": "JWT"}, map[string]any{"iss": account.Email,
			"scope": "https://www.googleapis.com/auth/monitoring.read", "iat": now, "exp": now + 3600,
			"aud": "https://oauth2.googleapis.com/token"}
	}
	for name, c := range map[string]struct {
		change func(header, claims map[string]any)
		key    *rsa.PrivateKey
		want   string // of the refusal; "" for a token
	}{
		"good":            {nil, key, ""},
		"another key":     {nil, other, "Invalid JWT Signature"},
		"another account": {func(_, c map[string]any) { c["iss"] = "x" }, key, "account not found"},
		"no algorithm":    {func(h, _ map[string]any) { h["alg"] = "none" }, key, "Invalid JWT"},
		"a shared secret": {func(h, _ map[string]any) { h["alg"] = "HS256" }, key, "Invalid JWT"},
		"expired":         {func(_, c map[string]any) { c["exp"] = now - 1 }, key, "short-lived"},
		"too long":        {func(_, c map[string]any) { c["exp"] = now + 7200 }, key, "short-lived"},
		"of tomorrow":     {func(_, c map[string]any) { c["iat"] = now + 86400 }, key, "short-lived"},
		"for another":     {func(_, c map[string]any) { c["aud"] = "https://x/" }, key, "audience"},
	} {
		header, claims := good()
		if c.change != nil {
			c.change(header, claims)
		}
		status, body := grant(s, sign(t, c.key, header, claims))
		refused := status == http.StatusBadRequest && strings.Contains(body, "invalid_grant") &&
			strings.Contains(body, c.want)
		given := status == http.StatusOK && strings.Contains(body, `"access_token"`)
		if c.want == "" && !given || c.want != "" && !refused {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	header, claims := good()
	forged := sign(t, key, header, claims)
	claims["scope"] = "https://www.googleapis.com/auth/cloud-platform"
	parts := strings.Split(sign(t, other, header, claims), ".")
	parts[2] = strings.Split(forged, ".")[2]
	if status, body := grant(s, strings.Join(parts, ".")); status != 400 {
		t.Errorf("with the signature of another: %s", body)
	}
	if status, body := grant(s, "x"); status != http.StatusBadRequest {
		t.Errorf("no JWT at all: %s", body)
	}
}

func privateKey(t *testing.T, file []byte) *rsa.PrivateKey {
	t.Helper()
	var fields accountKey
	if err := json.Unmarshal(file, &fields); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(fields.Key))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*rsa.PrivateKey)
}

func sign(t *testing.T, key *rsa.PrivateKey, header, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		text, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(header) + "." + part(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func grant(s *YouTube, assertion string) (status int, body string) {
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
		"assertion": {assertion}}
	r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestCloudNeedsAToken: requests without a token, or with one of another scope, are refused and
// not counted.
func TestCloudNeedsAToken(t *testing.T) {
	account, file, err := NewAccountKey("p1", "https://oauth2.googleapis.com/token")
	if err != nil {
		t.Fatal(err)
	}
	s := &YouTube{Cloud: Cloud{Accounts: []*ServiceAccount{account}}}
	now := time.Now().Unix()
	_, body := grant(s, sign(t, privateKey(t, file), map[string]any{"alg": "RS256"}, map[string]any{
		"iss": account.Email, "scope": "https://www.googleapis.com/auth/monitoring.read", "iat": now,
		"exp": now + 3600, "aud": "https://oauth2.googleapis.com/token"}))
	var token struct {
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &token); err != nil {
		t.Fatal(err)
	}
	ask := func(token string) int {
		r := httptest.NewRequest(http.MethodGet,
			"/v1beta1/projects/p1/services/youtube.googleapis.com/consumerQuotaMetrics", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	for _, token := range []string{"", "x", token.Access} {
		if status := ask(token); status != http.StatusUnauthorized {
			t.Errorf("with %q: %d", token, status)
		}
	}
	if c := s.Counts(); c.Requests != 0 {
		t.Errorf("%+v", c)
	}
}
