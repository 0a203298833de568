package wire

import "mobula/internal/errs"

// CompareFunctions tells whether two binaries can work together: every function that
// worker is to run for driver must be registered in it, with the same signature. The
// error is errs.ErrRegistryMismatch and names the function.
func CompareFunctions(driver, worker []FuncInfo) error {
	have := make(map[string]uint64, len(worker))
	for _, f := range worker {
		have[f.Name] = f.Signature
	}
	for _, f := range driver {
		sig, ok := have[f.Name]
		switch {
		case !ok:
			return errs.New(errs.CodeRegistryMismatch, "function %q is registered in the driver but not in the worker: both must be the same build", f.Name)
		case sig != f.Signature:
			return errs.New(errs.CodeRegistryMismatch, "function %q has another signature in the driver (%016x) than in the worker (%016x): both must be the same build", f.Name, f.Signature, sig)
		}
	}
	return nil
}
