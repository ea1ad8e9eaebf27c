// Webhook receives notifications. It checks their signatures and prints each one once.
//
//	QUOTA_NOTIFY_SECRET=whsec_… go run ./examples/webhook 127.0.0.1:9000
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	key, err := base64.StdEncoding.DecodeString(
		strings.TrimPrefix(os.Getenv("QUOTA_NOTIFY_SECRET"), "whsec_"))
	if err != nil || len(key) == 0 || len(os.Args) != 2 {
		log.Fatal("set QUOTA_NOTIFY_SECRET, and name an address to listen on")
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("http://" + listener.Addr().String() + "/")
	log.Fatal(http.Serve(listener, receive(key)))
}

func receive(key []byte) http.HandlerFunc {
	seen := make(chan map[string]bool, 1)
	seen <- map[string]bool{}
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || !signed(key, r.Header, body) {
			http.Error(w, "the signature does not match", http.StatusUnauthorized)
			return
		}
		var event struct{ Text string }
		if err := json.Unmarshal(body, &event); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ids := <-seen
		defer func() { seen <- ids }()
		if id := r.Header.Get("webhook-id"); !ids[id] {
			ids[id] = true
			fmt.Println(event.Text)
		}
	}
}

// signed checks the signature, and that it is recent, so that it cannot be replayed later.
func signed(key []byte, h http.Header, body []byte) bool {
	at, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", h.Get("webhook-id"), at, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(h.Get("webhook-signature")), []byte(want))
}
