"""Switches, links and endpoints; spanning trees and their repair; the frames that find links."""
