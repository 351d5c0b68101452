// SPDX-License-Identifier: Apache-2.0

// Command generate makes what is generated in this repository: code, CRDs, gRPC stubs, tables in
// documents, pictures, and what a Gardener Shoot shows of the dashboard and the alerts.
//
// Machine, MachineSet and MachineClass are aliases of machine-controller-manager's types.
// Generators do not follow aliases, so they run on a copy of the module with the types in their
// place.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

const (
	module   = "github.com/evenkeel/evenkeel"
	apis     = "pkg/apis"
	deepCopy = "zz_generated.deepcopy.go"
	header   = "--go-header-file=header.txt"
)

// outputs are the folders that hold nothing but generated files.
var outputs = []string{"pkg/client", crds, optionalCRDs}

const (
	crds = "kubernetes/crds"
	// optionalCRDs has those of kinds that others define, and may have installed.
	optionalCRDs = "kubernetes/optional-crds"
)

func main() {
	out := flag.String("out", ".", "folder that receives the generated files, laid out as in the repository")
	flag.Parse()
	if err := generate(*out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(out string) error {
	staged := filepath.Join(".local", "generate")
	if err := stage(staged); err != nil {
		return fmt.Errorf("stage sources: %w", err)
	}
	groups, err := stagedGroups(staged)
	if err != nil {
		return err
	}
	// Only our own types need deep copies, so these are made while aliases are aliases.
	if err := tool(staged, append([]string{"deepcopy-gen", header, "--output-file=" + deepCopy}, prefixed("./", groups)...)...); err != nil {
		return err
	}
	for _, group := range groups {
		if err := takeFile(filepath.Join(out, group, deepCopy), filepath.Join(staged, group, deepCopy)); err != nil {
			return err
		}
	}
	if err := expandAliases(staged); err != nil {
		return fmt.Errorf("expand aliases: %w", err)
	}
	if err := generateClients(staged, groups); err != nil {
		return err
	}
	for _, folder := range outputs {
		if err := takeFolder(filepath.Join(out, folder), filepath.Join(staged, folder)); err != nil {
			return fmt.Errorf("take over %s: %w", folder, err)
		}
	}
	if err := generateSeedReserves(out); err != nil {
		return fmt.Errorf("copy the CRD of Reserves: %w", err)
	}
	if err := generateStubs(out); err != nil {
		return err
	}
	if err := generateMetricsPage(out); err != nil {
		return err
	}
	if err := generateShootMonitoring(out); err != nil {
		return err
	}
	if err := generatePictures(out); err != nil {
		return err
	}
	return generateReasons(out)
}

// stagedGroups are the API packages, relative to the module.
func stagedGroups(staged string) ([]string, error) {
	folders, err := filepath.Glob(filepath.Join(staged, apis, "*", "v*"))
	if err != nil {
		return nil, err
	}
	for i := range folders {
		if folders[i], err = filepath.Rel(staged, folders[i]); err != nil {
			return nil, err
		}
	}
	return folders, nil
}

// generateClients runs the generators that want to see whole types.
func generateClients(staged string, groups []string) error {
	packages := prefixed(module+"/", groups)
	clients := path.Join(module, "pkg/client")
	to := func(folder string) []string {
		return []string{header, "--output-dir=pkg/client/" + folder, "--output-pkg=" + path.Join(clients, folder)}
	}
	run := func(name string, args ...[]string) error {
		all := []string{name}
		for _, a := range args {
			all = append(all, a...)
		}
		return tool(staged, all...)
	}
	if err := run("applyconfiguration-gen", to("applyconfiguration"), packages); err != nil {
		return err
	}
	if err := run("client-gen", to("clientset"), prefixed("--input=", packages), []string{
		"--input-base=", "--clientset-name=versioned",
		"--apply-configuration-package=" + path.Join(clients, "applyconfiguration"),
	}); err != nil {
		return err
	}
	if err := simplifyFake(staged); err != nil {
		return err
	}
	if err := workloadClients(run, to); err != nil {
		return err
	}
	if err := run("lister-gen", to("listers"), packages); err != nil {
		return err
	}
	if err := run("informer-gen", to("informers"), packages, []string{
		"--versioned-clientset-package=" + path.Join(clients, "clientset/versioned"),
		"--listers-package=" + path.Join(clients, "listers"),
	}); err != nil {
		return err
	}
	if err := sortGeneric(staged); err != nil {
		return fmt.Errorf("sort generic informers: %w", err)
	}
	if err := run("controller-gen", []string{"crd", "paths=./" + apis + "/...", "output:crd:dir=" + crds}); err != nil {
		return err
	}
	if err := describeCopied(staged); err != nil {
		return fmt.Errorf("describe copied fields: %w", err)
	}
	return errors.Join(
		setApart(staged, "autoscaling.x-k8s.io_capacitybuffers.yaml"),
		setApart(staged, "autoscaling.x-k8s.io_provisioningrequests.yaml"),
	)
}

// workloads are the groups of evenkeel-workloads. Their clientset beside the whole one does not contain the types of
// machine-controller-manager.
var workloads = []string{"autoscaling/v1alpha1", "balancer/v1alpha1"}

// workloadClients generates the clientset and the informers of workloads. They share listers and apply configurations
// with the whole ones.
func workloadClients(run func(string, ...[]string) error, to func(string) []string) error {
	packages, clients := prefixed(path.Join(module, apis)+"/", workloads), path.Join(module, "pkg/client")
	if err := run("client-gen", to("clientset"), prefixed("--input=", packages), []string{
		"--input-base=", "--clientset-name=workloads", "--fake-clientset=false",
		"--apply-configuration-package=" + path.Join(clients, "applyconfiguration"),
	}); err != nil {
		return err
	}
	return run("informer-gen", to("informers/workloads"), packages, []string{
		"--single-directory",
		"--versioned-clientset-package=" + path.Join(clients, "clientset/workloads"),
		"--listers-package=" + path.Join(clients, "listers"),
	})
}

// setApart moves a CRD to the optional ones.
func setApart(staged, name string) error {
	if err := os.MkdirAll(filepath.Join(staged, optionalCRDs), 0o755); err != nil {
		return err
	}
	return os.Rename(filepath.Join(staged, crds, name), filepath.Join(staged, optionalCRDs, name))
}

func prefixed(prefix string, items []string) []string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, prefix+item)
	}
	return out
}

func tool(dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"tool"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	return nil
}
