// Package standin plays the metered APIs of the price lists over HTTP.
//
// A stand-in is the judge in tests. It meters on its own clock and shares no code with the programs
// under test. It answers with the real shapes (headers, usage, streams, throttle status), and it
// refuses as the real API does.
//
//	s, _ := standin.New("anthropic")
//	s.Limits = map[string][]standin.Limit{"output": {{Units: 4000, Window: time.Minute}}}
//	http.ListenAndServe("127.0.0.1:8081", s)
//
// The folder apis has the limits, prices and responses of each API as data. Code only computes what
// a request costs, and what depends on that.
//
// Each stand-in is one account. Everything that it bills is billed when the request is admitted, so
// that a client that cuts its stream, or loses the answer, is billed in full.
//
// YouTube is the stand-in of the YouTube Data API v3 and of Google's metering of it. Its charts are
// generated or loaded.
//
//	s := &standin.YouTube{Limits: map[string]int64{"default": 9}}
//	upstream := httptest.NewServer(s)
//	// … point a client at upstream.URL, then
//	s.Counts().Units["default"]
//
// GET /standin/counts answers Counts; POST /standin/settings changes limits, prices and faults and
// puts the clock forward. Neither is metered. apis/youtube.yaml states what is known of YouTube and
// what is inferred.
package standin
