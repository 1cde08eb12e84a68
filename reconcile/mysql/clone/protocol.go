package clone

import (
	"encoding/binary"
	"slices"
)

// Versions of the clone plugin's protocol. The donor answers with the lower of its own and ours. All three are implemented.
const (
	protocolV1 = 0x0100 // names of plugins
	protocolV2 = 0x0101 // names and libraries of plugins
	protocolV3 = 0x0102 // further settings
)

// Commands of the recipient.
const (
	commandInit    = 1
	commandExecute = 4
	commandAck     = 5
	commandExit    = 6
)

// Responses of the donor.
const (
	responseLocators   = 1
	responseDescriptor = 2
	responseData       = 3
	responsePlugin     = 4
	responseConfig     = 5
	responseCollation  = 6
	responsePluginV2   = 7
	responseConfigV3   = 8
	responseComplete   = 99
	responseError      = 100
)

const (
	// engineInnoDB is the only storage engine of MySQL that supports cloning.
	engineInnoDB = 12
	// allowDDLFlag asks the donor not to block DDL during the copy. Donors know it since 8.0.27.
	allowDDLFlag = 1 << 31
	// ddlTimeout, in seconds, is for how long the donor waits for DDL in progress before it begins: MySQL's default of clone_ddl_timeout.
	ddlTimeout = 300
)

// locator identifies a copy to the donor. Only the donor interprets its content, except for the header.
type locator []byte

// encodeInit encodes the request for a copy.
func encodeInit(blockDDL bool) []byte {
	timeout := uint32(ddlTimeout)
	if !blockDDL {
		timeout |= allowDDLFlag
	}
	payload := binary.LittleEndian.AppendUint32(nil, protocolV3)
	payload = binary.LittleEndian.AppendUint32(payload, timeout)
	return appendLocator(payload, newLocator())
}

// encodeAck encodes the acknowledgement of a received stage, with the state descriptor of that stage.
func encodeAck(of locator, state []byte) []byte {
	payload := binary.LittleEndian.AppendUint32(nil, 0) // no error
	payload = appendLocator(payload, of)
	return append(appendLength(payload, len(state)), state...)
}

func appendLocator(payload []byte, of locator) []byte {
	payload = append(payload, engineInnoDB)
	return append(appendLength(payload, len(of)), of...)
}

// parseLocators parses the donor's answer to encodeInit: the version of the donor's protocol, and the copy's locator.
func parseLocators(payload []byte) (uint32, locator, error) {
	if len(payload) < 9 {
		return 0, nil, protocolError("locators of %d bytes", len(payload))
	}
	version := binary.LittleEndian.Uint32(payload)
	if version < protocolV1 || version > protocolV3 {
		return 0, nil, protocolError("clone protocol %#x; %#x to %#x are supported", version, protocolV1, protocolV3)
	}
	if payload[4] != engineInnoDB {
		return 0, nil, protocolError("storage engine number %d; only InnoDB (%d) is supported", payload[4], engineInnoDB)
	}
	length, rest := binary.LittleEndian.Uint32(payload[5:]), payload[9:]
	if uint64(length) != uint64(len(rest)) {
		return 0, nil, protocolError("more than one storage engine, or a locator cut short")
	}
	if _, err := parseHeader(rest, descLocator); err != nil {
		return 0, nil, err
	}
	return version, slices.Clone(rest), nil
}

// parseStrings parses count strings, each with its length before it.
func parseStrings(payload []byte, count int) ([]string, error) {
	values := make([]string, 0, count)
	for range count {
		if len(payload) < 4 {
			return nil, protocolError("a declaration that ends early")
		}
		length, rest := binary.LittleEndian.Uint32(payload), payload[4:]
		if uint64(length) > uint64(len(rest)) {
			return nil, protocolError("a declaration that ends early")
		}
		values, payload = append(values, string(rest[:length])), rest[length:]
	}
	if len(payload) != 0 {
		return nil, protocolError("a declaration of more than %d strings", count)
	}
	return values, nil
}

// parseDonorError parses an error that ends a command.
func parseDonorError(payload []byte) error {
	if len(payload) < 4 {
		return protocolError("an error without a number")
	}
	return &DonorError{Number: int(binary.LittleEndian.Uint32(payload)), Message: string(payload[4:])}
}

// declare adds one of the donor's declarations to the result. It reports whether the response is a declaration.
func (r *Result) declare(response byte, payload []byte) (bool, error) {
	counts := map[byte]int{responsePlugin: 1, responsePluginV2: 2, responseCollation: 1, responseConfig: 2, responseConfigV3: 2}
	count, known := counts[response]
	if !known {
		return false, nil
	}
	values, err := parseStrings(payload, count)
	if err != nil {
		return true, err
	}
	switch response {
	case responsePlugin:
		r.Plugins = append(r.Plugins, Plugin{Name: values[0]})
	case responsePluginV2:
		r.Plugins = append(r.Plugins, Plugin{Name: values[0], Library: values[1]})
	case responseCollation:
		r.Collations = append(r.Collations, values[0])
	case responseConfig, responseConfigV3:
		r.Settings[values[0]] = values[1]
	}
	return true, nil
}
