// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	stdjson "encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/json"
)

// BalanceMode defines how a MachineDeployment is kept even with similar ones.
type BalanceMode string

const (
	// BalanceOff does not change replicas.
	BalanceOff BalanceMode = "Off"
	// BalanceScaleUp splits growth over similar MachineDeployments before machines are created for
	// it.
	BalanceScaleUp BalanceMode = "ScaleUp"
	// BalanceContinuous splits growth, and also moves replicas one machine at a time until they are
	// even.
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

// Move is one MachineDeployment's half of a move of replicas. The giver has To, the takers have
// From. All halves have the same ID, so that replicas arrive once, even if a process is killed
// between two writes:
//
//  1. the giver's half is written: what is to move where;
//  2. each taker gets its replicas, and Taken, in one write;
//  3. the giver loses the replicas, and its half, in one write;
//  4. the takers' halves are removed.
//
// If a machine is moved, Reserve comes first: before step 1, a taker requests a reserve machine,
// and step 2 uses it.
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
	// To is the number of replicas for each MachineDeployment.
	To map[string]int32 `json:"to,omitempty"`
	// Machine is deleted when the replicas have arrived; empty if no machine was created for them
	// yet.
	Machine string `json:"machine,omitempty"`
	// From is the giving MachineDeployment.
	From string `json:"from,omitempty"`
	// Reserve is how many machines of [ShareAnnotation] exist only for the move.
	Reserve int32 `json:"reserve,omitempty"`
	// Taken is how many replicas have arrived.
	Taken int32 `json:"taken,omitempty"`
}

// maxMoveLength limits the length of a move, in bytes.
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
