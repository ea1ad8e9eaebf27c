package serve

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
)

//go:embed static/*
var staticFiles embed.FS

// asset returns the path of a static file, which changes with its content.
func asset(name string) string {
	data, err := staticFiles.ReadFile("static/" + name)
	if err != nil {
		return "/static/" + name
	}
	sum := sha256.Sum256(data)
	return "/static/" + name + "?v=" + hex.EncodeToString(sum[:6])
}

func static(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=86400")
	http.ServeFileFS(w, r, staticFiles, "static/"+r.PathValue("name"))
}
