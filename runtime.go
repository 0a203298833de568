package mobula

// engine connects the package to package node.
var engine runtimeEngine = noEngine{}
