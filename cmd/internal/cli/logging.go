package cli

import (
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// LogOptions are the flags for the level and the format of logs.
type LogOptions struct{ Level, Format string }

// Register adds the flags.
func (o *LogOptions) Register(flags *pflag.FlagSet) {
	flags.StringVar(&o.Level, "log-level", "info", "error, info (something changed), debug (every pass) or trace (details)")
	flags.StringVar(&o.Format, "log-format", "json", "json or console")
}

// Logger returns a logger that writes to out.
func (o *LogOptions) Logger(out io.Writer) (logr.Logger, error) {
	core, err := o.core(out)
	if err != nil {
		return logr.Discard(), err
	}
	return newLogger(core), nil
}

// LoggerForAll is Logger for a program that is a client of Kubernetes. It also receives what client-go logs through klog, which the whole
// process shares.
func (o *LogOptions) LoggerForAll(out io.Writer) (logr.Logger, error) {
	logger, err := o.Logger(out)
	if err != nil {
		return logger, err
	}
	//nolint:forbidigo // the one place where klog, which client-go logs through, is led into our log
	klog.SetLoggerWithOptions(logger.WithName("client"), klog.ContextualLogger(true))
	return logger, nil
}

func newLogger(core zapcore.Core) logr.Logger {
	return zapr.NewLoggerWithOptions(zap.New(core), zapr.ErrorKey("error"))
}

func (o *LogOptions) core(out io.Writer) (zapcore.Core, error) {
	// logr's V(1) is zap's level -1, and so on (github.com/go-logr/zapr).
	levels := map[string]zapcore.Level{"error": zapcore.ErrorLevel, "info": 0, "debug": -1, "trace": -2}
	level, known := levels[o.Level]
	if !known {
		return nil, BadUsage("--log-level=%s: use one of error, info, debug, trace", o.Level)
	}
	if err := OneOf("log-format", o.Format, "json", "console"); err != nil {
		return nil, err
	}
	return zapcore.NewCore(o.encoder(), zapcore.Lock(zapcore.AddSync(out)), zap.NewAtomicLevelAt(level)), nil
}

func (o *LogOptions) encoder() zapcore.Encoder {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey, config.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	config.EncodeLevel = levelName
	if o.Format == "console" {
		return zapcore.NewConsoleEncoder(config)
	}
	return zapcore.NewJSONEncoder(config)
}

// levelName writes levels as --log-level names them.
func levelName(level zapcore.Level, to zapcore.PrimitiveArrayEncoder) {
	switch {
	case level == -1:
		to.AppendString("debug")
	case level < -1:
		to.AppendString(fmt.Sprintf("trace%d", -level-1))
	default:
		to.AppendString(level.String())
	}
}
