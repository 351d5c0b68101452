// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// readings are the places where machine-controller-manager's controllers read a store: through lists of everything,
// through lists of one namespace, or past the listers.
type readings struct{ everything, namespaced, past []string }

func (r *readings) note(file string, call *ast.CallExpr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch method.Sel.Name {
	case "GetIndexer", "GetStore":
		r.past = append(r.past, file)
	case "List":
		switch from := method.X.(type) {
		case *ast.SelectorExpr: // c.machineLister.List
			if strings.HasPrefix(from.Sel.Name, "machine") && strings.HasSuffix(from.Sel.Name, "Lister") {
				r.everything = append(r.everything, file)
			}
		case *ast.CallExpr: // c.machineLister.Machines(namespace).List
			if of, ok := from.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(of.Sel.Name, "Machine") {
				if lister, ok := of.X.(*ast.SelectorExpr); ok && strings.HasSuffix(lister.Sel.Name, "Lister") {
					r.namespaced = append(r.namespaced, file)
				}
			}
		}
	}
}

var _ = Describe("machine-controller-manager's source", func() {
	It("reads what it decides on by lists of everything, which wait (L4.1), and only metrics by lists that do not (L4.5)", func() {
		library, err := build.Import("github.com/gardener/machine-controller-manager/pkg/controller", ".", 0)
		Expect(err).NotTo(HaveOccurred())
		var found readings
		for _, file := range library.GoFiles {
			tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(library.Dir, file), nil, 0)
			Expect(err).NotTo(HaveOccurred())
			ast.Inspect(tree, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					found.note(file, call)
				}
				return true
			})
		}
		Expect(slices.Compact(found.namespaced)).To(ConsistOf("metrics.go"))
		Expect(found.past).To(BeEmpty())
		Expect(found.everything).To(ContainElements("machineset.go", "deployment.go", "machine_safety.go"))
		Expect(len(found.everything)).To(BeNumerically(">=", 15))
	})
})
