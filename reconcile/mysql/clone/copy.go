package clone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Time-outs of a copy.
const (
	// silence is for how long the donor may send nothing. While it waits for an acknowledgement or prepares a stage, it sends a sign of
	// life every 5 seconds. It sends none while it waits for DDL (clone_ddl_timeout), or for prepared transactions (5 minutes), before it
	// begins.
	silence = 15 * time.Minute
	// writeTimeout, in seconds, is how long the donor waits for a Sink that does not accept data (net_write_timeout, with a default of one
	// minute). Independent of that, it waits for the acknowledgement of a stage for 30 minutes.
	writeTimeout = 30 * 60
	// longest, in seconds, is the maximum of wait_timeout: the second connection is idle throughout a stage.
	longest = 365 * 24 * 60 * 60
)

// blockSince is the first release whose donors can allow DDL during the copy. Older donors always block it.
const blockSince = 80027

// copier is one copy in progress.
type copier struct {
	donor    Donor
	observer Observer
	main     *session
	second   *session
	locator  locator
	to       *recipient
	result   Result
}

// Copy copies the donor's data: all InnoDB tablespaces and the redo log that makes them consistent. Tables of other engines come without
// rows, as with every clone (manual, "Clone Plugin Limitations").
//
// It needs little more memory than a piece of data (1 MiB), and receives data only as fast as the Sink accepts it. One Write of a Sink may
// take up to half an hour. In StageFiles the Sink receives the files one after the other, each from front to back. Cancelling ctx ends the
// copy at once and informs the donor, which can then serve the next copy. The errors are *DonorError, *UnsupportedError, errors of the Sink
// and the Observer, and network errors.
func Copy(ctx context.Context, donor Donor, sink Sink, observer Observer) (Result, error) {
	c := &copier{donor: donor, observer: observer, result: Result{Settings: map[string]string{}}}
	if err := c.connect(ctx); err != nil {
		return Result{}, fmt.Errorf("copy %s: %w", donor.Host, err)
	}
	defer c.main.close()
	defer c.second.close()
	stop := context.AfterFunc(ctx, func() {
		c.main.line.interrupt()
		c.second.line.interrupt()
	})
	defer stop()
	cloning := true // until the donor ends it, or COM_EXIT has been sent; also if a Sink panics
	defer func() {
		if cloning {
			c.release(ctx)
		}
	}()
	err := c.run(sink)
	cloning = err != nil && !endedByDonor(err)
	if errors.Is(err, errCancelled) {
		err = context.Cause(ctx)
	}
	if err != nil {
		return Result{}, fmt.Errorf("copy %s: %w", donor.Host, err)
	}
	return c.result, nil
}

func (c *copier) connect(ctx context.Context) error {
	main, err := connect(ctx, c.donor, silence)
	if err != nil {
		return err
	}
	second, err := connect(ctx, c.donor, silence)
	if err != nil {
		main.close()
		return err
	}
	c.main, c.second = main, second
	return nil
}

func (c *copier) run(sink Sink) error {
	release, err := parseRelease(c.main.version)
	if err != nil {
		return err
	}
	c.to = newRecipient(sink, release)
	if err := c.prepare(); err != nil {
		return err
	}
	for _, s := range []*session{c.main, c.second} {
		if err := s.command(comClone, nil); err != nil {
			return err
		}
		if err := s.expectOK(); err != nil {
			return fmt.Errorf("begin to clone: %w", err)
		}
	}
	if err := c.negotiate(release < blockSince); err != nil {
		return err
	}
	if err := c.stage(StageFiles); err != nil {
		return err
	}
	if err := c.receive(); err != nil {
		return err
	}
	c.result.Files, c.result.Bytes = c.to.count(), c.to.bytes
	if err := c.stage(StageDone); err != nil {
		return err
	}
	c.exit()
	return nil
}

func (c *copier) stage(stage Stage) error {
	if c.observer.Stage == nil {
		return nil
	}
	if err := c.observer.Stage(stage); err != nil {
		return fmt.Errorf("begin %v: %w", stage, err)
	}
	return nil
}

// prepare queries what the copy itself does not contain, and sets the time-outs of both connections.
func (c *copier) prepare() error {
	rows, err := c.main.query(`SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'version', 'innodb_page_size', 'innodb_data_file_path',
		'innodb_undo_directory', 'innodb_checksum_algorithm', 'lower_case_table_names')`)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if len(row) != 2 {
			return protocolError("a variable in %d columns", len(row))
		}
		c.result.Settings[row[0]] = row[1]
	}
	c.result.ServerVersion, c.result.ServerUUID = c.result.Settings["version"], c.result.Settings["server_uuid"]
	if err := c.second.isSame(c.result.ServerUUID); err != nil {
		return err
	}
	timeouts := fmt.Sprintf("SET SESSION net_write_timeout = %d, SESSION wait_timeout = %d", writeTimeout, longest)
	for _, s := range []*session{c.main, c.second} {
		if err := s.exec(timeouts); err != nil {
			return err
		}
	}
	return nil
}

// isSame checks that the connection leads to the same server as the first one, and not to another server behind the same name.
func (s *session) isSame(uuid string) error {
	rows, err := s.query("SELECT @@GLOBAL.server_uuid")
	if err != nil {
		return err
	}
	if uuid == "" || len(rows) != 1 || len(rows[0]) != 1 || rows[0][0] != uuid {
		return fmt.Errorf("two connections to the donor reached two different servers; use the host name of one member, not a Service of several members")
	}
	return nil
}

// negotiate asks for a copy. The donor declares what it consists of.
func (c *copier) negotiate(blockDDL bool) error {
	err := c.main.perform(commandInit, encodeInit(blockDDL), func(response byte, m *message) error {
		payload, err := m.rest()
		if err != nil {
			return err
		}
		if declared, err := c.result.declare(response, payload); declared || err != nil {
			return err
		}
		if response != responseLocators || c.locator != nil {
			return protocolError("response %d to COM_INIT", response)
		}
		_, c.locator, err = parseLocators(payload)
		return err
	})
	if err == nil && c.locator == nil {
		err = protocolError("no locator in the response to COM_INIT")
	}
	return err
}

// receive receives the whole copy.
func (c *copier) receive() error {
	err := c.main.perform(commandExecute, nil, func(response byte, m *message) error {
		if response != responseDescriptor {
			return protocolError("response %d during the copy", response)
		}
		payload, err := m.rest()
		if err != nil {
			return err
		}
		if len(payload) < 2 || payload[0] != engineInnoDB || payload[1] != 0 {
			return protocolError("a descriptor of another storage engine than InnoDB")
		}
		what, err := c.to.describe(payload[2:])
		if err != nil {
			return err
		}
		if what.data != nil {
			return c.receiveData(*what.data)
		}
		return c.react(what)
	})
	if err == nil && c.to.state != snapshotDone {
		err = protocolError("the end of the copy during %v", c.to.state)
	}
	return err
}

// receiveData receives the data after its descriptor.
func (c *copier) receiveData(desc dataDesc) error {
	response, m, err := c.main.response()
	if err != nil {
		return err
	}
	if response != responseData {
		return protocolError("response %d instead of data", response)
	}
	return c.to.receive(desc, m)
}

// react informs the observer, then the donor, about a state that begins or has ended.
func (c *copier) react(what reaction) error {
	if what.began != 0 && what.began != snapshotDone && c.observer.Estimated != nil {
		c.observer.Estimated(c.to.bytes + int64(min(what.estimate, maxFileSize)))
	}
	if what.began == snapshotRedo && c.observer.MomentPassed != nil {
		if err := c.observer.MomentPassed(); err != nil {
			return fmt.Errorf("note the moment of the copy: %w", err)
		}
	}
	if what.ended == 0 {
		return nil
	}
	if next := (what.ended + 1).stage(); next == StagePages || next == StageRedo {
		if err := c.stage(next); err != nil {
			return err
		}
	}
	err := c.second.perform(commandAck, encodeAck(c.locator, what.ack), func(response byte, _ *message) error {
		return protocolError("response %d to an acknowledgement", response)
	})
	if err != nil {
		return fmt.Errorf("acknowledge %v: %w", what.ended, err)
	}
	return nil
}

// response begins to receive the next response, and reads its first byte.
func (s *session) response() (byte, *message, error) {
	s.sequence = 0
	m, err := s.next()
	if err != nil {
		return 0, nil, err
	}
	var code [1]byte
	if _, err := m.Read(code[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = protocolError("an empty response")
		}
		return 0, nil, err
	}
	return code[0], m, nil
}

// perform sends a command of the clone protocol, and handles the responses until the last one.
func (s *session) perform(command byte, arguments []byte, handle func(response byte, m *message) error) error {
	if err := s.command(command, arguments); err != nil {
		return err
	}
	for {
		response, m, err := s.response()
		if err != nil {
			return err
		}
		if response != responseComplete && response != responseError {
			if err := handle(response, m); err != nil {
				return err
			}
			continue
		}
		payload, err := m.rest()
		if err != nil {
			return err
		}
		if response == responseError {
			return parseDonorError(payload)
		}
		return nil
	}
}
