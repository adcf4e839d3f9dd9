package jinja

// node is a piece of the tree; its fields are named as in jinja2.nodes.
type node interface{}

// expr computes a value.
type expr interface {
	eval(r *run, f *frame) (Value, error)
}

// stmt does something and says how to go on.
type stmt interface {
	exec(r *run, f *frame, out *buffer) (flow, error)
}

// flow is what a statement does to the loop around it.
type flow int

const (
	goOn flow = iota
	breakLoop
	continueLoop
)

// nameUse tells what a name in the tree is there for.
type nameUse int

const (
	load nameUse = iota
	store
	parameter // stored by the block it heads: a macro argument, a target of with
)

// expressions
type (
	constExpr struct{ value Value }
	nameExpr  struct {
		name string
		use  nameUse
		line int
		ref  ref
	}
	// nsExpr is namespace.attr as a target of set.
	nsExpr struct {
		name, attr string
		line       int
		ref        ref
	}
	tupleExpr struct{ items []expr }
	listExpr  struct{ items []expr }
	dictExpr  struct{ keys, values []expr }
	binExpr   struct {
		op          string
		left, right expr
		line        int
	}
	logicExpr struct {
		or          bool
		left, right expr
	}
	notExpr  struct{ node expr }
	signExpr struct {
		op   string
		node expr
		line int
	}
	concatExpr struct {
		nodes []expr
		line  int
	}
	compareExpr struct {
		expr expr
		ops  []operand
		line int
	}
	operand struct {
		op   string
		expr expr
	}
	attrExpr struct {
		node expr
		attr string
		line int
	}
	itemExpr struct {
		node, arg expr
		line      int
	}
	sliceExpr struct {
		node              expr
		start, stop, step expr // nil when left out
		line              int
	}
	callExpr struct {
		node expr
		args arguments
		line int
	}
	// filterExpr has no node when it filters a block; then it filters what the block made.
	filterExpr struct {
		node expr
		name string
		args arguments
		line int
		fn   *function
	}
	testExpr struct {
		node expr
		name string
		args arguments
		line int
		fn   *function
	}
	condExpr struct {
		test, yes, no expr // no may be nil
		line          int
	}
	arguments struct {
		args      []expr
		names     []string // of kwargs
		kwargs    []expr
		dynArgs   expr
		dynKwargs expr
	}
)

// statements
type (
	dataStmt   struct{ text string }
	outputStmt struct {
		node expr
		line int
	}
	ifStmt struct {
		test  expr
		body  []stmt
		elifs []*ifStmt
		other []stmt
		line  int
	}
	forStmt struct {
		target     expr
		iter       expr
		body       []stmt
		other      []stmt   // else: runs when nothing was looped over
		filter     *forTest // the if of the for, or nil
		line       int
		enter      []entry // of body
		enterOther []entry
		loopVar    *ref // where the body finds loop, when it asks for it
	}
	// forTest runs as a function of its own, with its own copy of the target.
	forTest struct {
		target, test expr
		layout       *layout
		enter        []entry
	}
	setStmt struct {
		target, node expr
		line         int
	}
	setBlockStmt struct {
		target expr
		filter *filterExpr // or nil
		body   []stmt
		line   int
		enter  []entry
	}
	macroStmt struct {
		name string
		ref  ref
		def  *macroDef
		line int
	}
	callStmt struct {
		call *callExpr // nil for generation
		def  *macroDef
		line int
	}
	filterStmt struct {
		filter *filterExpr
		body   []stmt
		line   int
		enter  []entry
	}
	withStmt struct {
		targets, values []expr
		body            []stmt
		line            int
		enter           []entry
	}
	jumpStmt struct {
		flow flow
		line int
	}
)
