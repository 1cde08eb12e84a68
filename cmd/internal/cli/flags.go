package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// environmentPrefix begins the name of every environment variable that replaces a flag.
const environmentPrefix = "MYSQL_OPERATOR_"

// usageError is a wrong command line.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

// BadUsage is an error that ends the program with ExitUsage.
func BadUsage(format string, arguments ...any) error {
	return &usageError{fmt.Errorf(format, arguments...)}
}

// Parse reads the command line. For flags that it does not contain, Parse reads the environment: MYSQL_OPERATOR_LOG_LEVEL for --log-level.
// It returns the arguments that are not flags.
func Parse(flags *pflag.FlagSet, p Process) ([]string, error) {
	flags.SortFlags = false
	flags.SetOutput(p.Out)
	if err := flags.Parse(p.Arguments); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil, err
		}
		return nil, &usageError{err}
	}
	var faults []error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := environmentName(flag.Name)
		value := p.Environment(name)
		if flag.Changed || value == "" {
			return
		}
		if err := flags.Set(flag.Name, value); err != nil {
			faults = append(faults, BadUsage("read environment variable %s=%q: %w", name, value, err))
		}
	})
	return flags.Args(), errors.Join(faults...)
}

// ParseAll is Parse for a subcommand that takes flags only.
func ParseAll(flags *pflag.FlagSet, p Process) error {
	rest, err := Parse(flags, p)
	if err == nil && len(rest) > 0 {
		err = BadUsage("%s takes no argument %q", flags.Name(), strings.Join(rest, " "))
	}
	return err
}

// environmentName returns the environment variable that replaces a flag.
func environmentName(flag string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// OneOf checks a flag whose value is one of a few words.
func OneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return BadUsage("--%s=%s: use one of %s", flag, value, strings.Join(words, ", "))
}
