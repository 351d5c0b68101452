// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	stdjson "encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/json"
)

// Annotations by which MachineDeployments of different zones are kept together.
const (
	// PoolExcessAnnotation, on the node template of a MachineDeployment, is the excess of its whole pool, in any form
	// that [ParseExcess] reads; a percentage is one of the pool's replicas. Annotations of a Gardener Shoot's worker arrive
	// there. The user writes it.
	PoolExcessAnnotation = AnnotationPrefix + "excess"

	// ShareAnnotation, on a MachineDeployment, is how many machines are wanted there in reserve: its share of its pool's
	// excess, and while replicas are on their way to it the machine that is made for them; see [ParseShare]. It counts
	// before bounds and before spec.excessReplicas. "0" means no reserve; no annotation means that there is no share. The balance
	// controller writes it.
	ShareAnnotation = AnnotationPrefix + "share"

	// BalanceAnnotation, on a MachineDeployment, says how it is kept even with those that are similar; see
	// [ParseBalanceMode]. The user writes it.
	BalanceAnnotation = AnnotationPrefix + "balance"

	// MoveAnnotation, on the MachineDeployments concerned, is a move of replicas under way; see [Move]. The balance
	// controller writes it.
	MoveAnnotation = AnnotationPrefix + "move"

	// GivenBoundsAnnotation, on a MachineDeployment, repeats the bounds that were written in the place of a user. Bounds
	// are the user's where they differ from it, or where it is absent. The balance controller writes it.
	GivenBoundsAnnotation = AnnotationPrefix + "given-bounds"

	// OwnExcessAnnotation, on a MachineDeployment, is what spec.excessReplicas held before a share or given bounds counted
	// in its place; it is put back after them. The balance controller writes it.
	OwnExcessAnnotation = AnnotationPrefix + "own-excess"
)

// BalanceMode says how a MachineDeployment is kept even with those that are similar.
type BalanceMode string

const (
	// BalanceOff leaves replicas alone.
	BalanceOff BalanceMode = "Off"
	// BalanceScaleUp splits growth over the similar ones before machines are made for it.
	BalanceScaleUp BalanceMode = "ScaleUp"
	// BalanceContinuous splits growth, and evens out what is uneven one machine at a time.
	BalanceContinuous BalanceMode = "Continuous"
)

// ParseBalanceMode reads the value of [BalanceAnnotation].
func ParseBalanceMode(text string) (BalanceMode, error) {
	switch mode := BalanceMode(text); mode {
	case BalanceOff, BalanceScaleUp, BalanceContinuous:
		return mode, nil
	}
	return BalanceOff, fmt.Errorf("balance %.80q: write %s, %s or %s", text, BalanceOff, BalanceScaleUp, BalanceContinuous)
}

// ParseShare reads the value of [ShareAnnotation], a count of machines.
func ParseShare(text string) (int32, error) {
	if !isCount(text) {
		return 0, fmt.Errorf("share %.80q: write a count", text)
	}
	n, err := parseCount("machines", text)
	if err != nil {
		return 0, fmt.Errorf("share %q: %w", text, err)
	}
	return n, nil
}

// Move is one MachineDeployment's half of a move of replicas. The one that gives has To, those that take have From. The two
// halves have the same ID, so that replicas arrive once, whoever is killed between two writes:
//
//  1. the giving half is written: what is to go where;
//  2. each that takes gets its replicas, and Taken, in one write;
//  3. the giving one loses them, and its half, in one write;
//  4. the taking halves are taken away.
//
// A machine is moved with Reserve first: before step 1 a taking half asks for a reserve machine, and step 2 uses it.
//
// The value of [MoveAnnotation] is its JSON form:
//
//	{"id":"8123","to":{"pool-z2":2,"pool-z3":2}}
//	{"id":"8123","from":"pool-z1","taken":2}
//
// +k8s:deepcopy-gen=false
type Move struct {
	// ID names the move.
	ID string `json:"id"`
	// To says how many replicas each MachineDeployment is to get.
	To map[string]int32 `json:"to,omitempty"`
	// Machine goes when the replicas have arrived; empty where no machine was made for them yet.
	Machine string `json:"machine,omitempty"`
	// From is the MachineDeployment that gives.
	From string `json:"from,omitempty"`
	// Reserve is how many machines of [ShareAnnotation] are there for the move alone.
	Reserve int32 `json:"reserve,omitempty"`
	// Taken is how many replicas have arrived.
	Taken int32 `json:"taken,omitempty"`
}

// maxMoveLength bounds what is read of a move, in bytes.
const maxMoveLength = 64 << 10

// ParseMove reads the value of [MoveAnnotation].
func ParseMove(text string) (Move, error) {
	if len(text) > maxMoveLength {
		return Move{}, fmt.Errorf("move of %d bytes: at most %d", len(text), maxMoveLength)
	}
	var m Move
	strict, err := json.UnmarshalStrict([]byte(text), &m)
	if err := errors.Join(append(strict, err)...); err != nil {
		return Move{}, fmt.Errorf("move %.80q: %w", text, err)
	}
	if err := m.valid(); err != nil {
		return Move{}, fmt.Errorf("move %.80q: %w", text, err)
	}
	return m, nil
}

func (m Move) valid() error {
	if m.ID == "" {
		return errors.New("no id")
	}
	if (len(m.To) > 0) == (m.From != "") {
		return errors.New("either it gives (to) or it takes (from)")
	}
	for name, n := range m.To {
		if name == "" || n <= 0 {
			return fmt.Errorf("%d replicas for %q", n, name)
		}
	}
	if m.Reserve < 0 || m.Taken < 0 {
		return errors.New("counts must not be below 0")
	}
	return nil
}

// String is the form that [ParseMove] reads.
func (m Move) String() string {
	text, err := stdjson.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encode move: %v", err)) // strings and numbers always encode
	}
	return string(text)
}
