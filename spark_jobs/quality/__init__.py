"""Great Expectations suites as gates: a suite and a staged result in, a verdict out."""
