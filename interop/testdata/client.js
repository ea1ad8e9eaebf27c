// Runs after the snippet of docs/proxy.md, which makes client. Prints what it saw as one JSON object.
const fs = require('fs');
const {Readable} = require('stream');

async function main(file) {
  const seen = {pages: 0, videos: 0, denied: ''};
  const regions = await client.i18nRegions.list({part: ['snippet']});
  seen.regions = regions.data.items.length;

  let pageToken;
  do {
    const page = await client.videos.list({
      part: ['id'], chart: 'mostPopular', regionCode: 'US', maxResults: 50, pageToken,
    });
    seen.pages++;
    seen.videos += page.data.items.length;
    pageToken = page.data.nextPageToken;
  } while (pageToken);

  const found = await client.search.list({part: ['snippet'], q: 'a'});
  seen.found = found.data.items.length;

  const user = new auth.OAuth2();
  user.setCredentials({access_token: 'token-of-a-user'});
  const media = fs.readFileSync(file);
  const requestBody = {snippet: {title: 'Ünïcode'}};
  const multipart = await client.videos.insert({
    auth: user, part: ['snippet'], requestBody,
    media: {mimeType: 'video/mp4', body: fs.createReadStream(file)},
  }, {rootUrl});
  seen.multipart = multipart.data.id;
  const plain = await client.videos.insert({
    auth: user, part: ['snippet'], media: {mimeType: 'video/mp4', body: Readable.from([media])},
  }, {rootUrl});
  seen.streamed = plain.data.id;
  seen.resumable = await resumable(media, requestBody);

  try {
    await client.videos.insert({
      auth: user, part: ['snippet'], requestBody, media: {body: fs.createReadStream(file)},
    }, {rootUrl});
  } catch (error) {
    seen.upload_denied = error.message;
  }

  for (let i = 0; i < 20 && !seen.denied; i++) {
    try {
      await client.videos.list({part: ['id'], chart: 'mostPopular'});
    } catch (error) {
      seen.denied = error.message;
      seen.status = error.status;
    }
  }
  console.log(JSON.stringify(seen));
}

// resumable uploads in chunks. The library leaves that to the program, as it goes with fetch.
async function resumable(media, resource) {
  const path = 'upload/youtube/v3/videos?uploadType=resumable&part=snippet';
  const begun = await fetch(rootUrl + path, {
    method: 'POST',
    headers: {
      'Authorization': 'Bearer token-of-a-user',
      'Content-Type': 'application/json',
      'X-Upload-Content-Length': `${media.length}`,
    },
    body: JSON.stringify(resource),
  });
  const session = begun.headers.get('location');
  if (!session.startsWith(rootUrl)) throw new Error(`the upload leaves the proxy: ${session}`);
  const size = 256 << 10;
  for (let from = 0; ; from += size) {
    const chunk = media.subarray(from, from + size);
    const answer = await fetch(session, {
      method: 'PUT',
      headers: {'Content-Range': `bytes ${from}-${from + chunk.length - 1}/${media.length}`},
      body: chunk,
      redirect: 'manual', // a 308 says go on
    });
    if (answer.status !== 308) return (await answer.json()).id;
    await answer.text();
  }
}

main(process.argv[2]).catch(error => {
  console.error(error);
  process.exit(1);
});
