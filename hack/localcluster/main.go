// SPDX-License-Identifier: Apache-2.0

// Evenkeel-localcluster is a Kubernetes control plane in one binary. The name it is called by, or
// its first argument, selects the component.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// components maps a name to what runs under it, with os.Args[0] being that name.
var components = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          run(kubeapiserver.NewAPIServerCommand),
	"kube-controller-manager": run(kubecontrollermanager.NewControllerManagerCommand),
	"kube-scheduler":          run(func() *cobra.Command { return kubescheduler.NewSchedulerCommand() }),
	"kubectl":                 runKubectl,
}

func main() {
	component, args, ok := dispatch(os.Args)
	if !ok {
		fmt.Fprintf(os.Stderr, "usage: %s %s [flags]\n", filepath.Base(os.Args[0]), strings.Join(names(), "|"))
		os.Exit(2)
	}
	os.Args = args
	components[component]()
}

// dispatch returns the component that args ask for and the arguments it is to see.
func dispatch(args []string) (component string, rest []string, ok bool) {
	for i, arg := range args[:min(2, len(args))] {
		name := filepath.Base(arg)
		if _, ok := components[name]; ok && (i == 0 || arg == name) {
			return name, append([]string{name}, args[i+1:]...), true
		}
	}
	return "", nil, false
}

func names() []string {
	var all []string
	for name := range components {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func run(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}

func runKubectl() {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
