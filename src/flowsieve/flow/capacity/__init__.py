"""Tables that fit their switches, coarsened where that costs least unwanted traffic."""
