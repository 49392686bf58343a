"""Values handed from one bound seat to the next in codes, so that nothing is quantised twice."""
