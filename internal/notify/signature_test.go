package notify_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
)

// signature returns what Standard Webhooks requires, under the key of secret.
func signature(h http.Header, body []byte) string {
	mac := hmac.New(sha256.New, []byte("twenty-four bytes of key"))
	io.WriteString(mac, h.Get("webhook-id")+"."+h.Get("webhook-timestamp")+"."+string(body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
