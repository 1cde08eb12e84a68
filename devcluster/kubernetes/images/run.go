package images

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// RunRegistry serves a store until it is stopped by a signal.
func RunRegistry(args []string) error {
	flags := flag.NewFlagSet("registry", flag.ExitOnError)
	dir := flags.String("store", "", "folder of the image store")
	listen := flags.String("listen", "", "address and port to serve on, plain HTTP")
	if err := flags.Parse(args); err != nil {
		return err
	}
	store, err := OpenStore(*dir)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: *listen, Handler: store.Handler(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve images: %w", err)
	}
	return nil
}

// RunLoad loads a docker-archive into a store and prints the full names of its images, one a line.
func RunLoad(args []string) error {
	flags := flag.NewFlagSet("image-load", flag.ExitOnError)
	dir := flags.String("store", "", "folder of the image store")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 1 {
		return errors.New("no archive given: use image-load --store DIR IMAGE.tar [NAME…]")
	}
	store, err := OpenStore(*dir)
	if err != nil {
		return err
	}
	loaded, err := store.Load(flags.Arg(0), flags.Args()[1:])
	if err != nil {
		return err
	}
	for _, ref := range loaded {
		fmt.Fprintln(os.Stdout, ref)
	}
	return nil
}

// RunPack stores an image that consists of one static binary.
func RunPack(args []string) error {
	flags := flag.NewFlagSet("image-pack", flag.ExitOnError)
	dir := flags.String("store", "", "folder of the image store")
	binary := flags.String("binary", "", "static binary, the image's only file and its entry point")
	name := flags.String("name", "", "image name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	store, err := OpenStore(*dir)
	if err != nil {
		return err
	}
	return store.Pack(*binary, *name)
}
