package model

import "tfbatch/internal/backend"

// Lender is a Model that lends its two ends to a drafter, which was trained between them and brings
// none of its own.
type Lender interface {
	// Ends are the embedding and the head, one and the same in a tied model. [Vocab, Hidden]
	// The final norm is not among them: a drafter has its own.
	Ends() (embed, head backend.Weight)
}
