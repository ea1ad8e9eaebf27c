"""Calls Reddit's API as testdata/more.mjs does the others, through the proxy at its argument."""
import sys

import praw
import prawcore

base = sys.argv[1].rstrip("/")  # it drops the path of a base URL
reddit = praw.Reddit(client_id="any", client_secret=None, user_agent="interop", oauth_url=base,
                     reddit_url=base, redirect_uri=base, check_for_updates=False)
reddit.auth.implicit(access_token="any", expires_in=3600, scope="read")
try:
    for _ in range(3):
        list(reddit.subreddit("golang").hot(limit=1))
except prawcore.exceptions.PrawcoreException as error:
    print(error)
