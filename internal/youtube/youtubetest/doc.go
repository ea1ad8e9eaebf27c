// Package youtubetest is a stand-in for the YouTube Data API v3 that meters by itself like the real
// one.
//
// A Server is an http.Handler over charts that are generated or loaded. It keeps its own count of
// units, so it can be the judge of whoever claims to stay within a quota:
//
//	standin := &youtubetest.Server{Limits: map[string]int64{"default": 9}}
//	upstream := httptest.NewServer(standin)
//	// … point a client at upstream.URL, then
//	standin.Counts().Units["default"]
//
// # What is known and what is inferred
//
// From the published quota table: the price and bucket of most methods (methods.tsv), the four
// buckets with 10,000, 100, 100 and 10,000 units a day, at least one unit for every request,
// invalid ones too, one for every page, and the reset at midnight in Los Angeles. Prices that are
// not in the table follow its pattern, reads 1 and writes 50.
//
// From recorded answers: the shape of lists and items, page tokens forwards and backwards, counters
// as decimal strings that may be missing, tags left out when there are none, unknown ids dropped in
// silence, and the bodies of quotaExceeded, dailyLimitExceeded, the daily 429, apiKeyMissing,
// API_KEY_INVALID, API_KEY_SERVICE_BLOCKED, accessNotConfigured, invalidRegionCode,
// invalidPageToken, missingRequiredParameter, unknownPart, backendError, the null message and the
// HTML of a wrong path.
//
// From the discovery document: paths, parameters and their ranges, and the shape of
// videos:batchGetStats.
//
// Inferred, no answer being recorded: the 429 of a minute, that video_batch_get_stats is refused
// with a 429 as the other narrow buckets are, the bodies of videoChartNotFound, of a maxResults out
// of range and of too many ids, that a rejected request takes no units, and that a request without
// a good key is billed to nobody. What a 5xx or a dropped connection costs is undocumented: here
// they cost what the method costs. A minute is a minute of the clock.
//
// An upload is billed once, when it begins: by the request that carries it, or by the one that
// starts a resumable session. From the published guide: the Location with an upload_id, chunks in
// multiples of 256 KiB with a Content-Range, the 308 with a Range, and the question with bytes */N.
// From the Google client: the 200 in place of that 308 where X-GUploader-No-308 asks for it. From
// other services on the same protocol: the 499 of a cancelled session, that it lasts a week, and
// the texts of its errors. That requests of a session take no units is inferred.
//
// Methods that are priced but not served answer an empty resource or an empty list, after they were
// metered; what was uploaded is not kept, but its resource has a digest of the bytes as its id.
// OAuth is asked for only where Tokens are set, and then of what writes alone; the texts of these
// errors are inferred. The fields parameter is ignored.
package youtubetest
