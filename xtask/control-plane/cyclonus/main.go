// Command cyclonus is a filter around the matcher of cyclonus, which evaluates
// NetworkPolicies as their specification says. Each line of standard input is
// one question {"policies":[…],"traffic":[…]}; the answer is one line
// {"answers":[{"ingress":…,"egress":…},…]} in the order of the traffic, or
// {"error":…} when it cannot be judged. It reads no cluster.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// A pod has a namespace; an address outside of the cluster has none.
type end struct {
	IP              string            `json:"ip"`
	Namespace       string            `json:"namespace,omitempty"`
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	PodLabels       map[string]string `json:"podLabels,omitempty"`
}

type connection struct {
	From     end    `json:"from"`
	To       end    `json:"to"`
	Protocol string `json:"protocol"`
	Port     int    `json:"port"`
}

type question struct {
	Policies []*networking.NetworkPolicy `json:"policies"`
	Traffic  []connection                `json:"traffic"`
}

// What the policies of the receiving and of the sending namespace say.
type verdict struct {
	Ingress bool `json:"ingress"`
	Egress  bool `json:"egress"`
}

type answer struct {
	Answers []verdict `json:"answers,omitempty"`
	Error   string    `json:"error,omitempty"`
}

func (e end) peer() *matcher.TrafficPeer {
	peer := &matcher.TrafficPeer{IP: e.IP}
	if e.Namespace != "" {
		peer.Internal = &matcher.InternalPeer{
			PodLabels:       e.PodLabels,
			NamespaceLabels: e.NamespaceLabels,
			Namespace:       e.Namespace,
		}
	}
	return peer
}

func judge(line []byte) (result answer) {
	// The matcher panics on policies that no API server would take.
	defer func() {
		if reason := recover(); reason != nil {
			result = answer{Error: fmt.Sprint(reason)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: err.Error()}
	}
	policy := matcher.BuildNetworkPolicies(true, asked.Policies)
	answers := []verdict{}
	for _, c := range asked.Traffic {
		allowed := policy.IsTrafficAllowed(&matcher.Traffic{
			Source:       c.From.peer(),
			Destination:  c.To.peer(),
			ResolvedPort: c.Port,
			Protocol:     core.Protocol(c.Protocol),
		})
		answers = append(answers, verdict{
			Ingress: allowed.Ingress.IsAllowed(),
			Egress:  allowed.Egress.IsAllowed(),
		})
	}
	return answer{Answers: answers}
}

func main() {
	// A line holds every policy of a cluster.
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := json.NewEncoder(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 1 {
			if err := output.Encode(judge(line)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}
