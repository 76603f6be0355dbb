"""Write LLVM IR: types, values, functions, expressions and elementary functions."""
