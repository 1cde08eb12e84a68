package destination

// The keys of a destination's Secret.
const (
	KeyAccess         = "AWS_ACCESS_KEY_ID"
	KeySecret         = "AWS_SECRET_ACCESS_KEY" //nolint:gosec // the name of one
	KeySession        = "AWS_SESSION_TOKEN"     //nolint:gosec // the name of one
	KeyRegion         = "AWS_REGION"
	KeyServiceAccount = "service-account.json"
	KeyAccount        = "AZURE_STORAGE_ACCOUNT"
	KeyAccountKey     = "AZURE_STORAGE_KEY"
	KeySAS            = "AZURE_STORAGE_SAS_TOKEN"
	// KeyEndpoint is the key with the one server, in addition to the provider's own, that the credentials may be sent to.
	KeyEndpoint = "endpoint"
	// keyEndpoints with the value anyEndpoint allows the Secret's own credentials to be sent to every server that a URL names, over HTTPS.
	keyEndpoints = "endpoints"
	anyEndpoint  = "any"
)
