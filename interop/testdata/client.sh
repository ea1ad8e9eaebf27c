#!/bin/sh
# curl against the proxy at $1 with the media in $2. Prints what it saw as one JSON object.
set -eu
base=${1%/}
media=$2
api=$base/youtube/v3
uploads=$base/upload/youtube/v3/videos

ask() { curl -sS --fail-with-body "$@"; }
items() { grep -c '"kind": "youtube#'"$1"'"' || true; }
user() { ask -H 'Authorization: Bearer token-of-a-user' "$@"; }
message() { grep -o '"message":"[^"]*"' "$1" | head -n 1 | field message; }
field() { sed -n 's/.*"'"$1"'": *"\([^"]*\)".*/\1/p' | head -n 1; }

regions=$(ask "$api/i18nRegions?part=snippet" | items i18nRegion)

pages=0 videos=0 token=''
while :; do
	ask "$api/videos?part=id&chart=mostPopular&regionCode=US&maxResults=50&pageToken=$token" >page
	pages=$((pages + 1)) videos=$((videos + $(items video <page)))
	token=$(field nextPageToken <page)
	[ -n "$token" ] || break
done

found=$(ask "$api/search?part=snippet&q=a" | items searchResult)

printf '{"snippet":{"title":"Ünïcode"}}' >resource
{
	printf -- '--b\r\nContent-Type: application/json\r\n\r\n'
	cat resource
	printf '\r\n--b\r\nContent-Type: video/mp4\r\n\r\n'
	cat "$media"
	printf '\r\n--b--\r\n'
} >related
multipart=$(user -H 'Content-Type: multipart/related; boundary=b' --data-binary @related \
	"$uploads?uploadType=multipart&part=snippet" | field id)
streamed=$(user -H 'Content-Type: video/mp4' -H 'Transfer-Encoding: chunked' \
	--data-binary "@$media" "$uploads?uploadType=media&part=snippet" | field id)

# A session: it begins, takes a chunk, says how far it is, and takes the rest.
size=$(wc -c <"$media")
user -D head -o /dev/null -H 'Content-Type: application/json' -H "X-Upload-Content-Length: $size" \
	--data-binary @resource "$uploads?uploadType=resumable&part=snippet"
session=$(sed -n 's/^[Ll]ocation: *\([^[:space:]]*\).*/\1/p' head)
case $session in "$base"/*) ;; *) echo "the upload leaves the proxy: $session" >&2; exit 1 ;; esac
chunk=$((256 * 1024))
head -c "$chunk" "$media" >first
tail -c "+$((chunk + 1))" "$media" >rest
put() { curl -sS -X PUT -H 'Content-Type: video/mp4' "$@" "$session"; }
status=$(put -o /dev/null -w '%{http_code}' --data-binary @first \
	-H "Content-Range: bytes 0-$((chunk - 1))/$size")
[ "$status" = 308 ]
put -o /dev/null -D head -H "Content-Range: bytes */$size" --data-binary ''
grep -qi "^range: bytes=0-$((chunk - 1))" head
resumable=$(put -H "Content-Range: bytes $chunk-$((size - 1))/$size" --data-binary @rest | field id)

curl -sS -o body -H 'Authorization: Bearer token-of-a-user' --data-binary @resource \
	-H 'Content-Type: application/json' "$uploads?uploadType=resumable&part=snippet"
upload_denied=$(message body)

denied='' status=0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	status=$(curl -sS -o body -w '%{http_code}' "$api/videos?part=id&chart=mostPopular")
	if [ "$status" != 200 ]; then
		denied=$(message body)
		break
	fi
done

cat <<END
{"regions": $regions, "pages": $pages, "videos": $videos, "found": $found,
 "multipart": "$multipart", "streamed": "$streamed", "resumable": "$resumable", "denied": "$denied", "status": $status,
 "upload_denied": "$upload_denied"}
END
