// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/internal/plugin/screen"
)

// noTarget means that there is no cluster with Nodes and pods.
const noTarget = "none"

// options are the options that all commands have in common.
type options struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	// target is the path of a kubeconfig, empty if Nodes and pods are in the same cluster.
	target string
	// everywhere reads all namespaces.
	everywhere bool
	poolLabels []string
	// connect creates the clients; tests replace it.
	connect func() (read.Clusters, error)
}

func newOptions(streams genericiooptions.IOStreams) *options {
	o := &options{IOStreams: streams, config: genericclioptions.NewConfigFlags(true)}
	o.connect = o.clusters
	return o
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	o.config.AddFlags(flags)
	flags.StringVar(&o.target, "target-kubeconfig", "", "kubeconfig of the cluster with the Nodes and pods, or \"none\"; default: the same cluster")
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "all namespaces")
	flags.StringSliceVar(&o.poolLabels, "pool-label", nil, "labels that name pools, as for the controllers (default worker.gardener.cloud/pool)")
}

// clusters connects to the clusters that the flags select.
func (o *options) clusters() (read.Clusters, error) {
	control, err := o.config.ToRESTConfig()
	if err != nil {
		return read.Clusters{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, err := o.namespace()
	if err != nil {
		return read.Clusters{}, err
	}
	target, err := o.targetConfig(control)
	if err != nil {
		return read.Clusters{}, err
	}
	return read.New(control, target, namespace)
}

// namespace is empty for all namespaces.
func (o *options) namespace() (string, error) {
	if o.everywhere {
		return "", nil
	}
	namespace, _, err := o.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	return namespace, nil
}

func (o *options) targetConfig(control *rest.Config) (*rest.Config, error) {
	switch o.target {
	case "":
		return control, nil
	case noTarget:
		return nil, nil
	}
	target, err := clientcmd.BuildConfigFromFlags("", o.target)
	if err != nil {
		return nil, fmt.Errorf("read the target kubeconfig: %w", err)
	}
	return target, nil
}

// The size of a screen if it is unknown.
const (
	usualWidth  = 80
	usualHeight = 24
)

// screenStyle returns the style that fits the output.
func (o *options) screenStyle() screen.Style {
	s := screen.Style{Width: usualWidth, Spaces: o.everywhere, ASCII: !unicode(os.Getenv)}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	file, terminal := o.terminal()
	if !terminal {
		return s
	}
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
		s.Width = columns
	}
	s.Color = colors(os.Getenv)
	return s
}

// colors reports whether a terminal gets colors. Any value of NO_COLOR means no.
func colors(environment func(string) string) bool {
	return environment("NO_COLOR") == "" && environment("TERM") != "dumb"
}

// terminal returns the output if it is a terminal.
func (o *options) terminal() (*os.File, bool) {
	file, ok := o.Out.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// unicode reports whether the locale supports all characters. If the locale is not set, it does, as
// on today's terminals.
func unicode(environment func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(environment(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return true
}

// interruptibleInput returns the standard input. Reading from it ends when ctx does. The goroutine that
// reads the original continues until its end or that of the process, because a read from a terminal
// cannot be canceled.
func (o *options) interruptibleInput(ctx context.Context) io.Reader {
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { _ = writer.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(writer, o.In)
		_ = writer.CloseWithError(err)
	}()
	return reader
}
