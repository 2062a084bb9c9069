"""What usage costs: `price(usage, model)` in US dollars, `price_nanos` in integers; None where it is not known.

Prices are those of genai-prices at the time of the call, with our rules where it has none. See
docs/reference/pricing.md.
"""

from turnlog.pricing.cost import price, price_nanos, price_version

__all__ = ["price", "price_nanos", "price_version"]
