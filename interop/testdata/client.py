# Runs after the snippet of docs/proxy.md, which makes youtube. Prints what it saw as one JSON object.
import io
import sys
from google.oauth2.credentials import Credentials
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaFileUpload, MediaIoBaseUpload

seen = {}
regions = youtube.i18nRegions().list(part="snippet").execute()
seen["regions"] = len(regions["items"])

seen["pages"], seen["videos"] = 0, 0
videos = youtube.videos()
request = videos.list(part="id", chart="mostPopular", regionCode="US", maxResults=50)
while request is not None:
    page = request.execute()
    ids = [v["id"] for v in page["items"]]
    seen["pages"] += 1
    seen["videos"] += len(ids)
    request = videos.list_next(request, page)

# A URL of more than 2048 characters is sent as a POST that stands for a GET.
fields = "items(" + ",".join("snippet/thumbnails/size%d/url" % n for n in range(80)) + ",id)"
long = videos.list(part="id", id=",".join(ids), fields=fields)
assert len(long.uri) > 2048, len(long.uri)
seen["long"] = len(long.execute()["items"])
seen["long_wanted"] = len(ids)

seen["found"] = len(youtube.search().list(part="snippet", q="a").execute()["items"])

# Uploads are a user's.
videos = build_from_document(document, credentials=Credentials("token-of-a-user")).videos()
body = {"snippet": {"title": "Ünïcode"}}
whole = MediaFileUpload(sys.argv[1], mimetype="video/mp4")
seen["multipart"] = videos.insert(part="snippet", body=body, media_body=whole).execute()["id"]

media = MediaFileUpload(sys.argv[1], mimetype="video/mp4", chunksize=256 << 10, resumable=True)
request, video, chunks = videos.insert(part="snippet", body=body, media_body=media), None, 0
while video is None:
    status, video = request.next_chunk()
    chunks += 1
assert chunks > 2, chunks
assert request.resumable_uri.startswith(document["rootUrl"]), request.resumable_uri
seen["resumable"] = video["id"]

# Of unknown length, as from a pipe.
class Pipe(MediaIoBaseUpload):
    def size(self):
        return None

    def has_stream(self):
        return False

pipe = Pipe(io.BytesIO(open(sys.argv[1], "rb").read()), "video/mp4", 256 << 10, True)
seen["streamed"] = videos.insert(part="snippet", body=body, media_body=pipe).execute()["id"]

try:
    videos.insert(part="snippet", body=body, media_body=media).execute()
except HttpError as error:
    seen["upload_denied"] = str(error)

seen["denied"] = ""
for _ in range(20):
    try:
        youtube.videos().list(part="id", chart="mostPopular").execute()
    except HttpError as error:
        seen["denied"], seen["status"] = str(error), error.resp.status
        break
print(json.dumps(seen))
