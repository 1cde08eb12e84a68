package clone

import (
	"bytes"
	"fmt"
)

// Commands outside cloning (MySQL source, include/my_command.h).
const (
	comQuery = 3
	comClone = 32
)

// maxColumns is more columns than any statement of this package returns.
const maxColumns = 16

// exec runs a statement that returns no rows.
func (s *session) exec(statement string) error {
	if err := s.command(comQuery, []byte(statement)); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	if err := s.expectOK(); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func (s *session) expectOK() error {
	reply, err := s.read()
	if err != nil {
		return err
	}
	if len(reply) > 0 && reply[0] == replyError {
		return parseError(reply)
	}
	if len(reply) == 0 || reply[0] != replyOK {
		return protocolError("a reply that is neither OK nor an error")
	}
	return nil
}

// query runs a statement and returns its rows; NULL is "".
func (s *session) query(statement string) ([][]string, error) {
	if err := s.command(comQuery, []byte(statement)); err != nil {
		return nil, fmt.Errorf("%s: %w", statement, err)
	}
	rows, err := s.result()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement, err)
	}
	return rows, nil
}

// result reads a text result (MySQL Internals, "Text Resultset"): the number of columns, their definitions, and the rows.
func (s *session) result() ([][]string, error) {
	first, err := s.read()
	if err != nil {
		return nil, err
	}
	if len(first) > 0 && first[0] == replyError {
		return nil, parseError(first)
	}
	if len(first) != 1 || first[0] == 0 || first[0] > maxColumns {
		return nil, protocolError("a result without rows")
	}
	columns := int(first[0])
	for range columns {
		if _, err := s.read(); err != nil {
			return nil, err
		}
	}
	if last, err := s.read(); err != nil || !isEOF(last) {
		return nil, orProtocol(err, "column definitions without an end")
	}
	return s.resultRows(columns)
}

func (s *session) resultRows(columns int) ([][]string, error) {
	var rows [][]string
	for {
		packet, err := s.read()
		if err != nil {
			return nil, err
		}
		if isEOF(packet) {
			return rows, nil
		}
		if len(packet) > 0 && packet[0] == replyError {
			return nil, parseError(packet)
		}
		row, err := parseRow(packet, columns)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}

func orProtocol(err error, what string) error {
	if err != nil {
		return err
	}
	return protocolError("%s", what)
}

// isEOF reports whether the packet ends a list. A row whose first column begins with the same byte is longer.
func isEOF(packet []byte) bool { return len(packet) > 0 && len(packet) < 9 && packet[0] == replyEOF }

// parseRow parses length-encoded strings (MySQL Internals, "Protocol::LengthEncodedString").
func parseRow(packet []byte, columns int) ([]string, error) {
	row := make([]string, 0, columns)
	for range columns {
		value, rest, err := cutString(packet)
		if err != nil {
			return nil, err
		}
		row, packet = append(row, string(value)), rest
	}
	if len(packet) != 0 {
		return nil, protocolError("a row with more than %d columns", columns)
	}
	return row, nil
}

func cutString(packet []byte) (value, rest []byte, err error) {
	if len(packet) == 0 {
		return nil, nil, protocolError("a row that ends early")
	}
	length, size := int(packet[0]), 1
	switch packet[0] {
	case 0xfb:
		return nil, packet[1:], nil
	case 0xfc:
		size = 3
	case 0xfd:
		size = 4
	case 0xfe, 0xff:
		return nil, nil, protocolError("a column of more than 16 MiB")
	}
	if len(packet) < size {
		return nil, nil, protocolError("a row that ends early")
	}
	if size > 1 {
		var number [4]byte
		copy(number[:], packet[1:size])
		length = int(number[0]) | int(number[1])<<8 | int(number[2])<<16
	}
	if len(packet)-size < length {
		return nil, nil, protocolError("a row that ends early")
	}
	return bytes.Clone(packet[size : size+length]), packet[size+length:], nil
}
