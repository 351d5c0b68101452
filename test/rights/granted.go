// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	syaml "sigs.k8s.io/yaml"
)

// manifests contains the objects that matter here.
type manifests struct {
	// rules of Roles and ClusterRoles, by kind, namespace and name.
	rules    map[[3]string][]rbacv1.PolicyRule
	bindings []rbacv1.RoleBinding
}

// Granted returns the rights that manifests grant to service accounts. It ignores the names to
// which a rule is limited.
func Granted(texts ...io.Reader) ([]Right, error) {
	m := manifests{rules: map[[3]string][]rbacv1.PolicyRule{}}
	for _, text := range texts {
		documents := yaml.NewYAMLReader(bufio.NewReader(text))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				err = m.addDocument(document)
			}
			if err != nil {
				return nil, fmt.Errorf("read manifest: %w", err)
			}
		}
	}
	var all []Right
	for _, binding := range m.bindings {
		key := [3]string{binding.RoleRef.Kind, "", binding.RoleRef.Name}
		if binding.RoleRef.Kind == "Role" {
			key[1] = binding.Namespace
		}
		rules, ok := m.rules[key]
		if !ok {
			return nil, fmt.Errorf("find %s %s of binding %s: there is none", key[0], key[2], binding.Name)
		}
		for _, subject := range binding.Subjects {
			all = append(all, spread(subject.Namespace+"/"+subject.Name, binding.Namespace, rules)...)
		}
	}
	return unique(all), nil
}

func (m *manifests) addDocument(document []byte) error {
	var kind metav1.TypeMeta
	if err := syaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "Role", "ClusterRole":
		var role rbacv1.Role // a ClusterRole has the same fields
		if err := syaml.Unmarshal(document, &role); err != nil {
			return err
		}
		m.rules[[3]string{kind.Kind, role.Namespace, role.Name}] = role.Rules
	case "RoleBinding", "ClusterRoleBinding":
		var binding rbacv1.RoleBinding
		if err := syaml.Unmarshal(document, &binding); err != nil {
			return err
		}
		m.bindings = append(m.bindings, binding)
	}
	return nil
}

// spread returns each verb on each kind of the rules.
func spread(account, namespace string, rules []rbacv1.PolicyRule) []Right {
	var all []Right
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, path := range rule.NonResourceURLs {
				all = append(all, Right{account, "", path, verb})
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					all = append(all, Right{account, namespace, qualified(group, resource), verb})
				}
			}
		}
	}
	return all
}
