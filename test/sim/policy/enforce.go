// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/evenkeel/evenkeel/test/sim"
)

// Checks contains what manifests require of objects.
type Checks []func(sim.Admission) error

// Enforce makes a server reject objects that do not pass.
func (c Checks) Enforce(s *sim.Server) {
	for _, check := range c {
		s.Admit(check)
	}
}

// Load compiles all definitions and bound policies in a folder of manifests.
func Load(folder string) (Checks, error) {
	manifests, err := read(folder)
	if err != nil {
		return nil, err
	}
	var checks Checks
	for _, m := range manifests {
		check, err := checkOf(m, manifests)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", m.GetKind(), m.GetName(), err)
		}
		if check != nil {
			checks = append(checks, check)
		}
	}
	return checks, nil
}

// checkOf returns the check of a manifest; nil for one that checks nothing.
func checkOf(m *unstructured.Unstructured, all []*unstructured.Unstructured) (func(sim.Admission) error, error) {
	switch m.GetKind() {
	case "CustomResourceDefinition":
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, definition); err != nil {
			return nil, err
		}
		return newSchema(definition)
	case "ValidatingAdmissionPolicy":
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, policy); err != nil {
			return nil, err
		}
		if !denies(policy.Name, all) {
			return nil, nil
		}
		return newRules(policy)
	}
	return nil, nil
}

// denies reports whether a binding makes a policy reject objects.
func denies(policy string, all []*unstructured.Unstructured) bool {
	for _, m := range all {
		name, _, _ := unstructured.NestedString(m.Object, "spec", "policyName")
		actions, _, _ := unstructured.NestedStringSlice(m.Object, "spec", "validationActions")
		for _, action := range actions {
			if m.GetKind() == "ValidatingAdmissionPolicyBinding" && name == policy && action == string(admissionv1.Deny) {
				return true
			}
		}
	}
	return false
}

// read reads all manifests below a folder.
func read(folder string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents, err := split(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, documents...)
		return nil
	})
	return all, err
}

func split(raw []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return nil, err
		}
		all = append(all, u)
	}
}
