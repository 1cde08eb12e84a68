package destination

import "testing"

// TestHostsOfEndpoints: all spellings of an endpoint give the same host, and only a provider's own servers count as the provider's.
func TestHostsOfEndpoints(t *testing.T) {
	t.Parallel()
	for host, story := range map[string]struct {
		scheme      string
		isProviders bool
		endpoints   []string
	}{
		"s3.eu-central-1.amazonaws.com":                {"s3", true, []string{"https://s3.eu-central-1.amazonaws.com", "https://S3.eu-central-1.amazonaws.com:443/"}},
		"vpce-1a2b-3c.s3.us-east-1.vpce.amazonaws.com": {"s3", true, []string{"https://vpce-1a2b-3c.s3.us-east-1.vpce.amazonaws.com/"}},
		"ec2-1-2-3-4.compute-1.amazonaws.com":          {"s3", false, []string{"https://ec2-1-2-3-4.compute-1.amazonaws.com"}},
		"minio.example:9000":                           {"s3", false, []string{"https://minio.example:9000", "HTTP://MinIO.Example.:9000/"}},
		"minio.example":                                {"s3", false, []string{"https://minio.example:443", "http://minio.example:80/", "https://minio.example"}},
		"[fd00::1]":                                    {"s3", false, []string{"https://[FD00::1]", "https://[fd00::1]:443/"}},
		"gateway.example/s3":                           {"s3", false, []string{"https://gateway.example/s3", "https://gateway.example/s3/"}},
		"storage.googleapis.com":                       {"gs", true, []string{"https://storage.googleapis.com"}},
		"account.blob.core.windows.net":                {schemeAzure, true, []string{"https://account.blob.core.windows.net/"}},
		"":                                             {"s3", false, []string{"minio.example", "", "https://"}},
	} {
		for _, endpoint := range story.endpoints {
			if got := normalHost(endpoint); got != host || isProviders(story.scheme, got) != story.isProviders {
				t.Errorf("%q is %q, the provider's %t; want %q, %t", endpoint, got, isProviders(story.scheme, got), host, story.isProviders)
			}
		}
	}
}

func TestURLsThatNameNoFolder(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "b/x", "ftp://b/x", "s3:///x", "file://b/x", "s3://b/../x", "s3://b/%2e%2e/x", "s3://user:password@b/x", "s3://b/x?regoin=r", "s3://b/x#y",
		"s3://b/x?endpoint=minio.example", "s3://b/%zz",
	} {
		place, err := Parse(url)
		if err == nil {
			err = checkEndpoint(place.Option("endpoint"))
		}
		if err == nil {
			t.Errorf("%q names %s", url, place)
		}
	}
}
