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
// puts the clock forward. Neither is metered.
//
// # What is known of YouTube and what is inferred
//
// From the published quota table: the price and bucket of most methods (methods.tsv), the four
// buckets with 10,000, 100, 100 and 10,000 units a day, at least one unit for every request,
// invalid ones too, one for every page, and the reset at midnight in Los Angeles. Prices that are
// not in the table follow its pattern, reads 1 and writes 50.
//
// From recorded responses: the shape of lists and items, page tokens forwards and backwards,
// counters as decimal strings that may be missing, absent empty tags, silently dropped unknown
// IDs, and the bodies of quotaExceeded, dailyLimitExceeded, the daily 429, apiKeyMissing,
// API_KEY_INVALID, API_KEY_SERVICE_BLOCKED, accessNotConfigured, invalidRegionCode,
// invalidPageToken, missingRequiredParameter, unknownPart, backendError, the null message and the
// HTML of a wrong path.
//
// From the discovery document: paths, parameters and their ranges, and the shape of
// videos:batchGetStats.
//
// Inferred, without a recorded response: the 429 of a minute, that video_batch_get_stats is
// refused with a 429 as the other narrow buckets are, the bodies of videoChartNotFound, of a
// maxResults out of range and of too many IDs, that a rejected request takes no units, and that a
// request without a valid key is not billed. The cost of a 5xx or a dropped connection is
// undocumented: here it is the method's cost. A minute is a minute of the clock.
//
// An upload is billed once, when it begins: by the request that carries it, or by the one that
// starts a resumable session. From the published guide: the Location with an upload_id, chunks in
// multiples of 256 KiB with a Content-Range, the 308 with a Range, and the question with bytes */N.
// From the Google client: the 200 in place of that 308 where X-GUploader-No-308 asks for it. From
// other services on the same protocol: the 499 of a cancelled session, and the texts of its errors.
// We infer that the requests of a session take no units. A session does not expire.
//
// Methods that are priced but not served return an empty resource or an empty list after
// metering. Uploaded media are not kept, but their resource has a digest of the bytes as its ID.
// OAuth is required only if Tokens are set, and only for writes; the texts of these errors are
// inferred. The fields parameter is ignored.
package standin
