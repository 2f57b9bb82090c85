"""From interests to flow entries: tables, their differences and safe orders, capacity, proof. Pure values."""
