// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa"
)

// fleetOptions define, by the hub's flags, where the clusters of federated autoscalers are.
type fleetOptions struct {
	namespace, registry, providers string
	access                         federatedhpa.Access
	allowed                        []string
}

func (f *fleetOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.namespace, "federation-clusters-namespace", "", "the value of the controllers' flag; defaults to the namespace of this command")
	flags.StringVar(&f.registry, "federation-registry", federatedhpa.SecretRegistry, "the value of the controllers' flag: "+federatedhpa.SecretRegistry+" or "+federatedhpa.ProfileRegistry)
	flags.StringSliceVar(&f.allowed, "federation-allow-in-kubeconfigs", nil, "the value of the controllers' flag")
	flags.StringVar(&f.providers, "clusterprofile-provider-file", "", "the value of the controllers' flag; its programs run on this machine to reach the clusters of ClusterProfiles. By default, none runs")
}

// complete reads the file with access programs.
func (f *fleetOptions) complete() error {
	if err := federatedhpa.Allowed(f.allowed).Validate(); err != nil {
		return fmt.Errorf("--federation-allow-in-kubeconfigs: %w", err)
	}
	switch {
	case !slices.Contains([]string{federatedhpa.SecretRegistry, federatedhpa.ProfileRegistry}, f.registry):
		return fmt.Errorf("--federation-registry: %q is neither %s nor %s", f.registry, federatedhpa.SecretRegistry, federatedhpa.ProfileRegistry)
	case f.providers == "":
		return nil
	case f.registry != federatedhpa.ProfileRegistry:
		return fmt.Errorf("--clusterprofile-provider-file needs --federation-registry=%s", federatedhpa.ProfileRegistry)
	}
	text, err := os.ReadFile(f.providers)
	if err == nil {
		f.access, err = federatedhpa.ReadAccess(text)
	}
	if err != nil {
		return fmt.Errorf("--clusterprofile-provider-file: %w", err)
	}
	return nil
}

// forNamespace returns the fleet of a command in a namespace.
func (f *fleetOptions) forNamespace(namespace string) dryrun.Fleet {
	return dryrun.Fleet{Namespace: cmp.Or(f.namespace, namespace), Profiles: f.registry == federatedhpa.ProfileRegistry, Access: f.access, Allowed: f.allowed}
}
