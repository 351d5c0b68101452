// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// request is what is read of an audit event.
type request struct {
	User struct {
		Username string
	}
	Verb       string
	RequestURI string
	ObjectRef  *struct {
		APIGroup, Resource, Subresource, Namespace string
	}
	Annotations map[string]string
}

const (
	decision      = "authorization.k8s.io/decision"
	accountPrefix = "system:serviceaccount:"
)

// Read reads an audit log, one JSON object per line: what these accounts asked for, given as
// namespace/name.
func Read(log io.Reader, accounts ...string) (Log, error) {
	users := map[string]string{}
	for _, account := range accounts {
		users[accountPrefix+strings.Replace(account, "/", ":", 1)] = account
	}
	used, refused := map[Right]bool{}, map[Right]bool{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return Log{}, fmt.Errorf("read audit log: %w", err)
		}
		if len(line) > 0 && bytes.Contains(line, []byte(accountPrefix)) {
			var r request
			if err := json.Unmarshal(line, &r); err != nil {
				return Log{}, fmt.Errorf("read audit log: %w", err)
			}
			if account, ok := users[r.User.Username]; ok {
				where := used
				if r.Annotations[decision] == "forbid" {
					where = refused
				}
				where[r.right(account)] = true
			}
		}
		if errors.Is(err, io.EOF) {
			return Log{Used: sorted(used), Refused: sorted(refused)}, nil
		}
	}
}

func (r request) right(account string) Right {
	if r.ObjectRef == nil || r.ObjectRef.Resource == "" {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return Right{account, "", path, r.Verb}
	}
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return Right{account, r.ObjectRef.Namespace, qualified(r.ObjectRef.APIGroup, resource), r.Verb}
}

// qualified puts the group behind the resource and before the subresource.
func qualified(group, resource string) string {
	resource, sub, _ := strings.Cut(resource, "/")
	if group != "" {
		resource += "." + group
	}
	if sub != "" {
		resource += "/" + sub
	}
	return resource
}

func sorted(set map[Right]bool) []Right {
	var all []Right
	for r := range set {
		all = append(all, r)
	}
	return unique(all)
}
