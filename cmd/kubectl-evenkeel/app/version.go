// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	semver "k8s.io/apimachinery/pkg/util/version"

	"github.com/evenkeel/evenkeel/internal/plugin/screen"
	"github.com/evenkeel/evenkeel/internal/settings"
	"github.com/evenkeel/evenkeel/internal/version"
)

func newVersion(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin and of the managers",
		Long: `Print the versions of the plugin and of the managers.

Managers publish their version in the ConfigMap evenkeel-settings in the namespace of their machines. If the minor versions
differ, plan and explain can differ from what the manager does: use the plugin of the manager's release.`,
		Example: `  # The manager of the namespace
  kubectl evenkeel version

  # The managers of all namespaces
  kubectl evenkeel version -A`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return o.printVersions(c.Context()) },
	}
}

func (o *options) printVersions(ctx context.Context) error {
	table := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "plugin\t%s\n", version.Short())
	namespace, err := o.namespace()
	if err != nil {
		return err
	}
	_, published, err := o.readPublications(ctx, namespace)
	for _, one := range published {
		fmt.Fprintf(table, "manager in namespace %s\t%s\n", screen.Sanitize(one.Namespace), screen.Sanitize(cmp.Or(settings.VersionOf(one), "unknown")))
	}
	if err := errors.Join(table.Flush(), err); err != nil {
		return fmt.Errorf("read the versions of managers: %w", err)
	}
	if len(published) == 0 {
		o.printNote("found no manager that publishes its version: use --namespace for another namespace, or -A for all")
	}
	for _, one := range published {
		o.noteSkew(version.Short(), settings.VersionOf(one))
	}
	return nil
}

// noteSkew prints a note if a manager has another minor version than the plugin.
func (o *options) noteSkew(plugin, manager string) {
	if minorOf(plugin) != "" && minorOf(manager) != "" && minorOf(plugin) != minorOf(manager) {
		o.printNote("the plugin is %s, and the manager %s, so plan and explain may differ from what the manager does: use the plugin of the manager's release", plugin, manager)
	}
}

// minorOf is the minor version of a release; empty for a build that is none.
func minorOf(text string) string {
	v, err := semver.ParseSemantic(text)
	if err != nil || v.Minor() == 0 && v.Major() == 0 || strings.Contains(text, "-0.") { // a commit, as the compiler names it
		return ""
	}
	return fmt.Sprintf("%d.%d", v.Major(), v.Minor())
}
