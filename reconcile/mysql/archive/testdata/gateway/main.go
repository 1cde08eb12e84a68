// Command gateway is the S3 server of rclone, with local folders as its only store: gateway [flags of `rclone serve s3`] FOLDER.
// The folders in FOLDER are its buckets.
package main

import (
	"os"

	_ "github.com/rclone/rclone/backend/local" // the store
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/serve/s3" // the server
)

func main() {
	// The configuration of this machine's user does not apply. Uploads are kept in memory until they are complete: a damaged piece may then
	// be sent again, as with Amazon's S3.
	settings := []string{"serve", "s3", "--config=", "--quiet", "--disable-multipart-streaming"}
	cmd.Root.SetArgs(append(settings, os.Args[1:]...))
	cmd.Main()
}
