// Runs with the snippet of docs/proxy.md, which makes the service. Prints what it saw as one JSON
// object.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/youtube/v3"
)

type sight struct {
	Regions   int    `json:"regions"`
	Pages     int    `json:"pages"`
	Videos    int    `json:"videos"`
	Found     int    `json:"found"`
	Multipart string `json:"multipart"`
	Resumable string `json:"resumable"`
	Streamed  string `json:"streamed"`
	Denied    string `json:"denied"`
	Upload    string `json:"upload_denied"`
	Status    int    `json:"status"`
}

func main() {
	ctx := context.Background()
	service, err := connect(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var s sight
	regions, err := service.I18nRegions.List([]string{"snippet"}).Do()
	if err != nil {
		log.Fatal(err)
	}
	s.Regions = len(regions.Items)
	chart := service.Videos.List([]string{"id"}).
		Chart("mostPopular").RegionCode("US").MaxResults(50)
	err = chart.Pages(ctx, func(page *youtube.VideoListResponse) error {
		s.Pages++
		s.Videos += len(page.Items)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	found, err := service.Search.List([]string{"snippet"}).Q("a").Do()
	if err != nil {
		log.Fatal(err)
	}
	s.Found = len(found.Items)
	// Uploads are a user's.
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token-of-a-user"})
	service, err = youtube.NewService(ctx,
		option.WithEndpoint(service.BasePath), option.WithTokenSource(token))
	if err != nil {
		log.Fatal(err)
	}
	for chunk, id := range map[int]*string{
		16 << 20: &s.Multipart, 256 << 10: &s.Resumable, 0: &s.Streamed,
	} {
		if *id, err = upload(service, chunk); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := upload(service, 256<<10); err != nil {
		s.Upload = err.Error()
	}
	for range 20 {
		_, err := service.Videos.List([]string{"id"}).Chart("mostPopular").Do()
		var refused *googleapi.Error
		if errors.As(err, &refused) {
			s.Denied, s.Status = err.Error(), refused.Code
			break
		}
	}
	json.NewEncoder(os.Stdout).Encode(s)
}

func upload(service *youtube.Service, chunk int) (id string, err error) {
	media, err := os.Open(os.Args[1])
	if err != nil {
		return "", err
	}
	defer media.Close()
	v, err := service.Videos.Insert([]string{"snippet"}, &youtube.Video{
		Snippet: &youtube.VideoSnippet{Title: "Ünïcode"},
	}).Media(media, googleapi.ChunkSize(chunk)).Do()
	if err != nil {
		return "", err
	}
	return v.Id, nil
}
