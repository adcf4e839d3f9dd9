package jinja

// children lists the nodes below n in the order jinja2's visitors see them.
func children(n node) []node {
	if e, ok := n.(expr); ok {
		return exprChildren(e)
	}
	return stmtChildren(n)
}

// nodeList collects nodes; it leaves out those that are not there.
type nodeList []node

func (l *nodeList) exprs(list ...expr) {
	for _, e := range list {
		if e != nil {
			*l = append(*l, e)
		}
	}
}

func (l *nodeList) body(list []stmt) {
	for _, s := range list {
		*l = append(*l, s)
	}
}

func exprChildren(e expr) (out nodeList) {
	switch n := e.(type) {
	case *tupleExpr:
		out.exprs(n.items...)
	case *listExpr:
		out.exprs(n.items...)
	case *dictExpr:
		for i, key := range n.keys {
			out.exprs(key, n.values[i])
		}
	case *binExpr:
		out.exprs(n.left, n.right)
	case *logicExpr:
		out.exprs(n.left, n.right)
	case *notExpr:
		out.exprs(n.node)
	case *signExpr:
		out.exprs(n.node)
	case *concatExpr:
		out.exprs(n.nodes...)
	case *compareExpr:
		out.exprs(n.expr)
		for _, op := range n.ops {
			out.exprs(op.expr)
		}
	case *attrExpr:
		out.exprs(n.node)
	case *itemExpr:
		out.exprs(n.node, n.arg)
	case *sliceExpr:
		out.exprs(n.node, n.start, n.stop, n.step)
	case *callExpr:
		out.exprs(n.node)
		out.exprs(n.args.all()...)
	case *filterExpr:
		out.exprs(n.node)
		out.exprs(n.args.all()...)
	case *testExpr:
		out.exprs(n.node)
		out.exprs(n.args.all()...)
	case *condExpr:
		out.exprs(n.test, n.yes, n.no)
	}
	return out
}

func stmtChildren(n node) (out nodeList) {
	switch n := n.(type) {
	case *outputStmt:
		out.exprs(n.node)
	case *ifStmt:
		out.exprs(n.test)
		out.body(n.body)
		for _, elif := range n.elifs {
			out = append(out, elif)
		}
		out.body(n.other)
	case *forStmt:
		out.exprs(n.target, n.iter)
		out.body(n.body)
		out.body(n.other)
		if n.filter != nil {
			out.exprs(n.filter.test)
		}
	case *setStmt:
		out.exprs(n.target, n.node)
	case *setBlockStmt:
		out.exprs(n.target)
		if n.filter != nil {
			out.exprs(n.filter)
		}
		out.body(n.body)
	case *macroStmt:
		out = append(out, n.def)
	case *macroDef:
		for _, arg := range n.args {
			out.exprs(arg)
		}
		out.exprs(n.defaults...)
		out.body(n.body)
	case *callStmt:
		if n.call != nil {
			out.exprs(n.call)
		}
		out = append(out, n.def)
	case *filterStmt:
		out.body(n.body)
		out.exprs(n.filter)
	case *withStmt:
		out.exprs(n.targets...)
		out.exprs(n.values...)
		out.body(n.body)
	}
	return out
}

func (a *arguments) all() []expr {
	return append(append(append([]expr{}, a.args...), a.kwargs...), a.dynArgs, a.dynKwargs)
}
