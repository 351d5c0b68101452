// SPDX-License-Identifier: Apache-2.0

package sim

import (
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patched returns a copy of an object with the request's patch applied.
func (r *request) patched(was *version) (map[string]any, error) {
	if r.patch == types.JSONPatchType {
		return r.jsonPatched(was.encoded())
	}
	var patch map[string]any
	if err := utiljson.Unmarshal(r.body, &patch); err != nil {
		return nil, apierrors.NewBadRequest("decode patch: " + err.Error())
	}
	object := runtime.DeepCopyJSON(was.object)
	if r.patch == types.MergePatchType {
		return merged(object, patch), nil
	}
	object, err := strategicpatch.StrategicMergeMapPatch(object, patch, r.table.Type)
	if err != nil {
		return nil, apierrors.NewBadRequest("apply patch: " + err.Error())
	}
	return object, nil
}

func (r *request) jsonPatched(raw []byte) (map[string]any, error) {
	patch, err := jsonpatch.DecodePatch(r.body)
	if err != nil {
		return nil, apierrors.NewBadRequest("decode patch: " + err.Error())
	}
	if raw, err = patch.Apply(raw); err != nil {
		return nil, apierrors.NewGenericServerResponse(422, "", r.table.gvr.GroupResource(), r.Name, err.Error(), 0, false)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return object, nil
}

// merged applies a merge patch (RFC 7396) to an object in place.
func merged(object, patch map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			inner, _ := object[name].(map[string]any)
			object[name] = merged(inner, value)
		default:
			object[name] = value
		}
	}
	return object
}
