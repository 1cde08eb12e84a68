// Command probe is the pod of the dev cluster's own tests: a web server that returns its name and a file, and a client for it.
//
//	probe serve FOLDER    writes a line into FOLDER/starts, serves on :8080
//	probe get URL         prints the answer; fails after 2 seconds
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) == 2 && args[0] == "get":
		return get(args[1])
	}
	return errors.New("usage: probe serve FOLDER | probe get URL")
}

func serve(dir string) error {
	starts := filepath.Join(dir, "starts")
	file, err := os.OpenFile(starts, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(file, "started"); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Println("serving as", name)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) })
	mux.HandleFunc("GET /starts", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, starts) })
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: time.Second}
	return server.ListenAndServe()
}

func get(url string) error {
	client := http.Client{Timeout: 2 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
