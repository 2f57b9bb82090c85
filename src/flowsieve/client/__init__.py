"""The publisher's and the subscriber's side: sessions, events, losses."""
