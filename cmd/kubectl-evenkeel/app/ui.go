// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/page"
	"github.com/evenkeel/evenkeel/internal/plugin/read"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

func newUI(o *options) *cobra.Command {
	var port int
	var open bool
	c := &cobra.Command{
		Use:   "ui",
		Short: "Show the status in a browser, with live updates",
		Long: `Show pools, zones, machines, Balancers, federated autoscalers and the last hour in a browser, with live updates. The page of a
MachineDeployment links to the result of kubectl evenkeel size --from-cluster.

The command serves the page on 127.0.0.1 only, with the rights of the kubeconfig, and is read-only. The printed address contains
a key, without which a browser has no access. History begins when the command starts.`,
		Example: `  # On a free port, which is printed
  kubectl evenkeel ui

  # all namespaces, on port 8899, and open a browser
  kubectl evenkeel ui -A --port 8899 --open`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.serveUI(c.Context(), port, open) },
	}
	c.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1; 0 means any free port")
	c.Flags().BoolVar(&open, "open", false, "open the page in a browser")
	return c
}

// serveUI serves the page until ctx ends. It returns after everything that it started has ended.
func (o *options) serveUI(ctx context.Context, port int, open bool) error {
	clusters, err := o.connect()
	if err != nil {
		return err
	}
	listener, err := page.Listen(ctx, port)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	follower, err := clusters.Follow(following)
	if err != nil {
		_ = listener.Close() // no browser has connected yet
		return err
	}
	shown := o.followSettings(following)
	defer func() { stop(); follower.Wait(); shown.wait() }()
	server := page.New(o.clusterNames(clusters), o.source(clusters, follower, shown), clock.RealClock{}, page.Pace)
	address := server.Address(listener)
	fmt.Fprintln(o.Out, address)
	if open {
		defer o.openBrowser(address)()
	}
	return server.Serve(ctx, listener)
}

func (o *options) source(clusters read.Clusters, follower *read.Follower, shown *followedSettings) page.Source {
	return page.Source{
		Size: func(ctx context.Context, namespace, name string) (size.Answer, error) {
			return o.sizeOf(ctx, clusters, inNamespace(follower.Objects(), namespace), name)
		},
		Changed: follower.Changed(),
		Read: func() overview.Overview {
			return overview.New(shown.apply(follower.Objects()))
		},
	}
}

// inNamespace leaves out MachineDeployments of other namespaces.
func inNamespace(o overview.Objects, namespace string) overview.Objects {
	o.Deployments = slices.DeleteFunc(o.Deployments, func(d *v1alpha1.MachineDeployment) bool { return d.Namespace != namespace })
	return o
}

// sizeOf sizes the reserve of a MachineDeployment as size does with --from-cluster and no other flag.
func (o *options) sizeOf(ctx context.Context, clusters read.Clusters, objects overview.Objects, name string) (size.Answer, error) {
	z, flags := &sizeOptions{options: o}, pflag.NewFlagSet("size", pflag.ContinueOnError)
	z.addSizeFlags(flags)
	z.flags = flags
	pool, err := size.ReadPool(objects, name)
	if err != nil {
		return size.Answer{}, err
	}
	if err := z.adoptManagerFlags(ctx, pool.Namespace, flags); err != nil {
		return size.Answer{}, err
	}
	q, err := z.question(pool)
	if err != nil {
		return size.Answer{}, err
	}
	trace, err := z.traceOfCluster(ctx, clusters, pool)
	if err != nil {
		return size.Answer{}, err
	}
	return trace.answer(ctx, q)
}

// clusterNames describes the clusters and the namespace that are shown.
func (o *options) clusterNames(clusters read.Clusters) string {
	where := "all namespaces"
	if clusters.Namespace != "" {
		where = "namespace " + clusters.Namespace
	}
	if name := *o.config.Context; name != "" {
		return name + ", " + where
	}
	config, err := o.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil || config.CurrentContext == "" {
		return where
	}
	return config.CurrentContext + ", " + where
}

// openers are the programs that open a file in the user's browser.
var openers = map[string][]string{
	"darwin":  {"open"},
	"windows": {"rundll32", "url.dll,FileProtocolHandler"},
	"linux":   {"xdg-open"},
}

// openBrowser opens an address in a browser, if there is one. The address was printed before. The
// caller calls forget when the page ends.
func (o *options) openBrowser(address string) (forget func()) {
	folder, err := leadTo(address)
	forget = func() { _ = os.RemoveAll(folder) }
	if err == nil {
		err = startBrowser(filepath.Join(folder, leading))
	}
	if err != nil {
		fmt.Fprintln(o.ErrOut, "open a browser:", err)
	}
	return forget
}

// leading is the name of the file that leads to the page.
const leading = "evenkeel.html"

// leadTo writes a file that only its owner can read, and that redirects a browser to an address. An
// address on the browser's command line would show its key to every user of this machine.
func leadTo(address string) (folder string, err error) {
	// A sandboxed browser may have access only to the home folder.
	cache, err := os.UserCacheDir()
	if err != nil || os.MkdirAll(cache, 0o700) != nil {
		cache = os.TempDir()
	}
	if folder, err = os.MkdirTemp(cache, "evenkeel-ui-"); err != nil {
		return "", err
	}
	text := fmt.Sprintf("<!doctype html><meta http-equiv=refresh content=\"0; url=%s\"><title>Evenkeel</title>\n", html.EscapeString(address))
	return folder, os.WriteFile(filepath.Join(folder, leading), []byte(text), 0o600)
}

func startBrowser(path string) error {
	opener, found := openers[runtime.GOOS]
	if !found {
		return fmt.Errorf("cannot open a browser on %s", runtime.GOOS)
	}
	// The browser outlives this command.
	browser := exec.Command(opener[0], append(opener[1:len(opener):len(opener)], path)...)
	if err := browser.Start(); err != nil {
		return err
	}
	return browser.Process.Release()
}
