// SPDX-License-Identifier: Apache-2.0

package mcm

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/gardener/machine-controller-manager/pkg/controller"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/watch"
)

// Dismantle ends what the controllers leave running. Run shuts the queues down only after the
// workers have ended, which wait for exactly that; and the broadcaster of their events cannot be
// reached from outside. Whatever still runs in a bubble at its end is a deadlock, so Dismantle
// reaches both through unexported fields.
func Dismantle(c controller.Controller) {
	fields := reflect.ValueOf(c).Elem()
	var broadcasters []*watch.Broadcaster
	for i := range fields.NumField() {
		field := exportField(fields.Field(i))
		if field.Kind() != reflect.Interface || field.IsNil() {
			continue
		}
		if queue, ok := field.Interface().(interface{ ShutDown() }); ok {
			queue.ShutDown()
		}
		if b := broadcaster(field.Elem()); b != nil {
			broadcasters = append(broadcasters, b)
		}
	}
	if len(broadcasters) > 0 {
		broadcasters[0].Shutdown() // one for all recorders
	}
}

// broadcaster finds what the recorder of a control writes to; recorders embed it.
func broadcaster(control reflect.Value) *watch.Broadcaster {
	if control.Kind() != reflect.Struct {
		return nil
	}
	recorder := control.FieldByName("Recorder")
	if !recorder.IsValid() || recorder.IsNil() {
		return nil
	}
	inner := exportField(recorder.Elem().Elem().FieldByName("recorderImpl"))
	if !inner.IsValid() || inner.IsNil() {
		return nil
	}
	found, _ := inner.Elem().FieldByName("Broadcaster").Interface().(*watch.Broadcaster)
	return found
}

// exportField makes an unexported field readable.
func exportField(field reflect.Value) reflect.Value {
	if !field.IsValid() || !field.CanAddr() {
		return field
	}
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

// registerer discards the controllers' metrics: otherwise, a second instance in one process would
// panic. Everything else is registered as usual.
type registerer struct{ prometheus.Registerer }

func (r registerer) MustRegister(all ...prometheus.Collector) {
	for _, one := range all {
		if _, theirs := one.(controller.Controller); !theirs {
			r.Registerer.MustRegister(one)
		}
	}
}

var tolerateManyControllers = sync.OnceFunc(func() {
	prometheus.DefaultRegisterer = registerer{prometheus.DefaultRegisterer}
})
