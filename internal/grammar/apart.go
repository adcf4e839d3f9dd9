package grammar

import "fmt"

// rival is a pair of schemas that no text may match both of.
type rival struct {
	a, b expr
	name string
}

// maxPairs is how many pairs of states are looked at, for all rivals of a schema, before they are taken for alike.
const maxPairs = 1 << 13

// apart refuses rivals with a text in common. Rules must have their bodies.
func (c *compiler) apart() error {
	left := maxPairs
	for _, r := range c.rivals {
		if !c.pool.apart(r.a, r.b, &left) {
			return fmt.Errorf("%s cannot be told apart; give each a const, or use anyOf", r.name)
		}
	}
	return nil
}

// apart reports whether no text is in both a and b: no pair of states that one text leads to may end it.
func (p *pool) apart(a, b expr, left *int) bool {
	type pair struct{ a, b expr }
	seen := map[pair]bool{{a, b}: true}
	for todo := []pair{{a, b}}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if *left--; *left < 0 || p.nodes[at.a].empty && p.nodes[at.b].empty {
			return false
		}
		for c := range 256 {
			next := pair{p.step(at.a, byte(c)), p.step(at.b, byte(c))}
			if next.a != never && next.b != never && !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return true
}
