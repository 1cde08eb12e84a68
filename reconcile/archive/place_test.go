package archive

import "testing"

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		want string
		urls []string
	}{
		"Amazon": {"s3:///b/shop/x", []string{
			"s3://b/shop/x", "s3://b/shop/x/", "s3://b//shop/./x?region=eu-central-1", "S3://b/shop/x?use_path_style=true&region=r", "s3://b/%73hop/x",
			"s3://b/shop/x?endpoint=https://s3.eu-central-1.amazonaws.com", "s3://b/shop/x?endpoint=https://vpce-1a2b-3c.s3.us-east-1.vpce.amazonaws.com/",
		}},
		"the bucket itself": {"s3:///b/", []string{"s3://b", "s3://b/", "s3://b?region=r"}},
		"a server": {"s3://minio.example:9000/b/x", []string{
			"s3://b/x?endpoint=https://minio.example:9000", "s3://b/x/?region=r&endpoint=https%3A%2F%2Fminio.example%3A9000%2F",
			"s3://b/x?use_path_style=true&endpoint=HTTP://MinIO.Example.:9000&region=q",
		}},
		"a server at its scheme's port": {"s3://minio.example/b/x", []string{
			"s3://b/x?endpoint=https://minio.example:443", "s3://b/x?endpoint=http://minio.example:80/", "s3://b/x?endpoint=https://minio.example",
		}},
		"an address of IPv6":    {"s3://[fd00::1]/b/x", []string{"s3://b/x?endpoint=https://[FD00::1]", "s3://b/x?endpoint=https://[fd00::1]:443/"}},
		"a path of a gateway":   {"s3://gateway.example/s3/b/x", []string{"s3://b/x?endpoint=https://gateway.example/s3", "s3://b/x?endpoint=https://gateway.example/s3/"}},
		"a customer's machine":  {"s3://ec2-1-2-3-4.compute-1.amazonaws.com/b/x", []string{"s3://b/x?endpoint=https://ec2-1-2-3-4.compute-1.amazonaws.com"}},
		"Google":                {"gs:///b/x", []string{"gs://b/x", "gs://b/x?endpoint=https://storage.googleapis.com"}},
		"Azure":                 {"azblob:///c/x", []string{"azblob://c/x", "azblob://c/x?storage_account=account", "azblob://c/x?endpoint=https://account.blob.core.windows.net/"}},
		"a volume":              {"file:////shop/x", []string{"file:///shop/x", "file:///shop//x/"}},
		"an escaped slash":      {"s3:///b/a/c", []string{"s3://b/a%2Fc", "s3://b/a/c"}},
		"a name like a host":    {"s3:///b/minio.example/x", []string{"s3://b/minio.example/x"}},
		"a bucket with a point": {"s3:///b.example/x", []string{"s3://b.example/x"}},
	} {
		for _, url := range story.urls {
			if got, err := PlaceOf(url); err != nil || got != story.want {
				t.Errorf("%s: PlaceOf(%q) = %q, %v; want %q", name, url, got, err, story.want)
			}
		}
	}
}

func TestPlaceOfRefusesWhatOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "b/x", "ftp://b/x", "s3:///x", "file://b/x", "s3://b/../x", "s3://b/%2e%2e/x", "s3://user:password@b/x", "s3://b/x?regoin=r", "s3://b/x#y",
		"s3://b/x?endpoint=minio.example", "s3://b/%zz",
	} {
		if got, err := PlaceOf(url); err == nil {
			t.Errorf("PlaceOf(%q) = %q", url, got)
		}
	}
}
