// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"
)

// discover answers the requests that a client makes before it knows any kind.
func (s *Server) discover(path []string) (answer, error) {
	switch {
	case path[0] == "version":
		return object(http.StatusOK, kubeversion.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0-sim"})
	case path[0] == "healthz" || path[0] == "readyz" || path[0] == "livez":
		return answer{code: http.StatusOK, body: []byte("ok")}, nil
	case path[0] == "api" && len(path) == 1:
		return object(http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path[0] == "api":
		return s.discoverKinds(schema.GroupVersion{Version: path[1]})
	case path[0] == "apis" && len(path) == 1:
		return object(http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: s.groups()})
	case path[0] == "apis" && len(path) == 3:
		return s.discoverKinds(schema.GroupVersion{Group: path[1], Version: path[2]})
	}
	for _, g := range s.groups() {
		if path[0] == "apis" && path[1] == g.Name {
			g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			return object(http.StatusOK, g)
		}
	}
	return answer{}, unknownPath("/" + strings.Join(path, "/"))
}

func (s *Server) groups() []metav1.APIGroup {
	var groups []metav1.APIGroup
	seen := map[string]bool{"": true}
	for _, t := range s.order {
		if seen[t.Group] {
			continue
		}
		seen[t.Group] = true
		v := metav1.GroupVersionForDiscovery{GroupVersion: t.gvr.GroupVersion().String(), Version: t.Version}
		groups = append(groups, metav1.APIGroup{Name: t.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return groups
}

func (s *Server) discoverKinds(gv schema.GroupVersion) (answer, error) {
	kinds := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, t := range s.order {
		if t.gvr.GroupVersion() == gv {
			kinds.APIResources = append(kinds.APIResources, t.discovered()...)
		}
	}
	if kinds.APIResources == nil {
		return answer{}, unknownPath(gv.String())
	}
	return object(http.StatusOK, kinds)
}

func (t *table) discovered() []metav1.APIResource {
	all := []metav1.APIResource{{
		Name: t.Name, SingularName: strings.ToLower(t.Kind), Namespaced: t.Namespaced, Kind: t.Kind, ShortNames: t.ShortNames,
		Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}}
	sub := func(name, group, version, kind string, verbs ...string) {
		all = append(all, metav1.APIResource{
			Name: t.Name + "/" + name, Namespaced: t.Namespaced, Group: group, Version: version, Kind: kind, Verbs: verbs,
		})
	}
	if t.Status {
		sub("status", "", "", t.Kind, "get", "patch", "update")
	}
	if t.Scale != nil {
		sub("scale", "autoscaling", "v1", "Scale", "get", "patch", "update")
	}
	if t.gvr.GroupResource() == (schema.GroupResource{Resource: "pods"}) {
		sub("eviction", "policy", "v1", "Eviction", "create")
		sub("binding", "", "v1", "Binding", "create")
	}
	return all
}
