// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	mcmoptions "github.com/gardener/machine-controller-manager/cmd/machine-controller-manager/app/options"
	mcoptions "github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/logs"
	"sigs.k8s.io/yaml"

	workloads "github.com/evenkeel/evenkeel/cmd/evenkeel-workloads/app"
	"github.com/evenkeel/evenkeel/cmd/kubectl-evenkeel/app"
	manager "github.com/evenkeel/evenkeel/cmd/machine-controller-manager/app"
	machinecontroller "github.com/evenkeel/evenkeel/cmd/machine-controller/app"
)

// root is the repository's folder.
const root = "../../.."

// flagsOf returns flags by name, each with how it is passed, without those of others.
func flagsOf(others func(*pflag.FlagSet), sets ...*pflag.FlagSet) map[string][]string {
	known := pflag.NewFlagSet("others", pflag.ContinueOnError)
	others(known)
	all := map[string][]string{}
	for _, set := range sets {
		set.VisitAll(func(f *pflag.Flag) {
			if known.Lookup(f.Name) != nil || f.Name == "help" {
				return
			}
			all[f.Name] = []string{`"--` + f.Name + `"`, `"--` + f.Name + `=`, "--" + f.Name + " "}
			if f.Shorthand != "" {
				all[f.Name] = append(all[f.Name], `"-`+f.Shorthand+`"`)
			}
		})
	}
	return all
}

// pluginFlags returns the flags of all commands.
func pluginFlags() (all []*pflag.FlagSet) {
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		if c.Name() == "completion" || c.Name() == "help" {
			return // cobra's own
		}
		all = append(all, c.LocalFlags(), c.PersistentFlags())
		for _, sub := range c.Commands() {
			add(sub)
		}
	}
	add(app.NewRoot(genericiooptions.NewTestIOStreamsDiscard()))
	return all
}

// passes reports whether a spec in a folder passes a flag in one of these forms.
func passes(folder string, forms []string) bool {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	Expect(err).NotTo(HaveOccurred())
	return slices.ContainsFunc(files, func(file string) bool {
		text := readFile(file)
		return slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) })
	})
}

func readFile(file string) string {
	GinkgoHelper()
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("Every flag", func() {
	var specs map[string]map[string][2]string
	BeforeEach(func() {
		Expect(yaml.UnmarshalStrict([]byte(readFile("testdata/flags.yaml")), &specs)).To(Succeed())
	})

	DescribeTable("has a spec that sees its effect, and no other is listed", func(binary string, find func() map[string][]string) {
		flags := find()
		Expect(slices.Collect(maps.Keys(specs[binary]))).To(ConsistOf(slices.Collect(maps.Keys(flags))))
		for flag, spec := range specs[binary] {
			Expect(readFile(filepath.Join(root, spec[0]))).To(ContainSubstring(spec[1]), flag)
			Expect(passes(filepath.Join(root, filepath.Dir(spec[0])), flags[flag])).To(BeTrue(), flag)
		}
	},
		Entry(nil, "machine-controller-manager", func() map[string][]string {
			return flagsOf(func(f *pflag.FlagSet) { mcmoptions.NewMCMServer().AddFlags(f); logs.AddFlags(f) }, manager.NewOptions().Flags())
		}),
		Entry(nil, "evenkeel-workloads", func() map[string][]string {
			return flagsOf(func(f *pflag.FlagSet) { logs.AddFlags(f) }, workloads.NewOptions().Flags())
		}),
		Entry(nil, "machine-controller", func() map[string][]string {
			return flagsOf(func(f *pflag.FlagSet) { mcoptions.NewMCServer().AddFlags(f); logs.AddFlags(f) }, machinecontroller.NewOptions().Flags())
		}),
		Entry(nil, "kubectl-evenkeel", func() map[string][]string {
			return flagsOf(genericclioptions.NewConfigFlags(true).AddFlags, pluginFlags()...)
		}),
	)
})
