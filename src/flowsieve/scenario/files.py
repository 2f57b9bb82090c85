"""What commands read beside a scenario: filters, events, dumps of flows, and events on the command line."""

from flowsieve.scenario.events import parse_assignments, read_events
from flowsieve.scenario.flows import read_flows
from flowsieve.scenario.requests import read_filters

__all__ = ["parse_assignments", "read_events", "read_filters", "read_flows"]
